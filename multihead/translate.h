// Translate and score with a loaded model: beam search over a key/value cache, sentences batched by length.
//
//   const mh::ModelFolder folder = mh::load_model_folder("en-de");
//   mh::translate_text(folder, {"two dogs run ."}, {.search = {.beam_size = 5}});      // text in, text out
//   mh::score_text(folder, {"two dogs run ."}, {"zwei Hunde laufen ."});               // log p(target | source)
//
// translate() and score() do the same on token ids and return all hypotheses with their scores.
// examples/translate_sentence.cpp is a whole program.
#pragma once

#include "multihead/evaluate/score.h"
#include "multihead/generate/translate.h"
#include "multihead/model.h"
#include "multihead/tasks/translate_text.h"
