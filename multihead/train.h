// Train a translator from two text files, a sentence a line: tokenizer, model, Adam, validation by beam search and
// BLEU, checkpoints. The same settings give the same bits on any number of threads, also after a stop.
//
//   mh::TranslatorSettings settings;
//   settings.train_source = "train.en";
//   settings.train_target = "train.de";
//   settings.model = "en-de";
//   settings.updates = 8000;
//   mh::train_translator(settings);      // called again it goes on from the newest checkpoint
//
// examples/train_on_two_files.cpp is a whole program.
#pragma once

#include "multihead/train/translator/train_translator.h"
