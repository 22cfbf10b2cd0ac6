// Continues texts with a causal model (GPT-2, Llama): sampling, greedy search, beam search.
//
//   const mh::ModelFolder folder = mh::load_model_folder("gpt2");
//   mh::GenerateTextOptions options{.stop = {"\n"}};
//   options.generate.filters = {.temperature = 0.8, .top_p = 0.9};
//   const std::string text = mh::generate_text(folder, {"The sky is"}, options).at(0).text;
//
// generate() does the same on token ids. score_windows() and perplexity() say how well a model predicts a
// text, and fill_words() fills masked words in with an encoder (BERT):
//
//   mh::fill_words(mh::load_model_folder("bert"), {"Paris is the [MASK] of France."}).at(0).at(0).at(0).word;
//
// examples/continue_text.cpp is a whole program.
#pragma once

#include "multihead/evaluate/perplexity.h"
#include "multihead/generate/generate.h"
#include "multihead/model.h"
#include "multihead/tasks/fill_words.h"
#include "multihead/tasks/generate_text.h"
