// Turns text into token ids and back, with tokenizers that read and write Hugging Face's tokenizer.json, and learns
// new ones.
//
//   mh::Tokenizer tokenizer = mh::train_bpe(lines, {.vocabulary_size = 8000});
//   std::vector<int32_t> ids = tokenizer.encode_ids("two dogs run .");
//   std::string text = tokenizer.decode(ids);
//
// A loaded ModelFolder has its own. examples/learn_tokenizer.cpp is a whole program.
#pragma once

#include "multihead/text/tokenizer.h"
#include "multihead/text/train_tokenizer.h"
