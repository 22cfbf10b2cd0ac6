// The steps of a tokenizer in words, so that two ways to do the same have the same words.
#pragma once

#include <string>

#include "multihead/text/tokenizer_parts.h"

namespace mh {

struct StepWords {
  std::string normalizer, pre_tokenizer, decoder, post_processor, model;  // but for its lists

  /// digits_stand_alone: no token of the vocabulary has a digit and something else, so that merges keep digits apart. types: of
  /// the tokens of a template, which count where models are given them.
  StepWords(const TokenizerParts& parts, bool digits_stand_alone, bool types);
};

/// A model without its vocabulary, merges and scores.
TokenModel without_lists(const TokenModel& model);

}  // namespace mh
