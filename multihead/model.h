// Loads a model from the folder that multihead trains into, or that Hugging Face Transformers wrote
// (config.json, model.safetensors, tokenizer.json).
//
//   const mh::ModelFolder folder = mh::load_model_folder("en-de");
//   folder.model->parameter_count();
//   for (const auto& [attention, heads, place] : folder.model->attentions()) ...   // "encoder.3.self_attention", 4, {kEncoderSelf, 3}
//   mh::use_precision(*folder.model, mh::Precision::kFast);                                // docs/precision.md
//   mh::save_model_folder("copy", folder, {.type = mh::NumberType::kBFloat16});              // Transformers opens it
//
// Any number of threads may use a loaded model at once. Use it with translate.h and heads.h; examples/list_heads.cpp
// is a whole program.
#pragma once

#include "multihead/folders/model_folder.h"
#include "multihead/folders/save_folder.h"
#include "multihead/models/language_model.h"
#include "multihead/models/model.h"
#include "multihead/models/use_precision.h"
