// Continues texts with a causal model (GPT-2, Llama): sampling, greedy search, beam search.
//
//   const mh::ModelFolder folder = mh::load_model_folder("gpt2");
//   mh::GenerateTextOptions options{.stop = {"\n"}};
//   options.generate.filters = {.temperature = 0.8, .top_p = 0.9};
//   const std::string text = mh::generate_text(folder, {"The sky is"}, options).at(0).text;
//
// generate() does the same on token ids. examples/continue_text.cpp is a whole program.
#pragma once

#include "multihead/generate/generate.h"
#include "multihead/model.h"
#include "multihead/recipes/generate_text.h"
