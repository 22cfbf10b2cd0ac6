// A model on disk: the folder that multihead trains into and Hugging Face Transformers opens (config.json,
// model.safetensors, tokenizer.json), loaded as it is.
//
//   const mh::ModelFolder folder = mh::load_model_folder("en-de");
//   folder.model->parameter_count();
//   for (const auto& [attention, heads] : folder.model->attentions()) ...   // "encoder.3.self_attention", 4
//
// Any number of threads may use a loaded model at once. translate.h, heads.h and train.h are what to do with it;
// examples/list_heads.cpp is a whole program.
#pragma once

#include "multihead/models/language_model.h"
#include "multihead/models/model.h"
#include "multihead/models/model_folder.h"
