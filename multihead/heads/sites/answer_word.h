// A word that a model may say, as the tokens that it has in its place in a text.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "multihead/text/tokenizer.h"

namespace mh {

/// The text around the place of an answer, and the mask that stands there, or nothing.
struct AnswerPlace {
  const Tokenizer& tokenizer;
  std::string before, after = {};
  std::string mask = {};

  /// The tokens of an answer here. Without a mask it comes behind the text, after a space where neither has one.
  std::vector<int32_t> tokens(const std::string& answer) const;
};

/// A word counts by its first token.
struct AnswerWord {
  int32_t token = 0;
  std::string label;   // of that token
  int64_t tokens = 0;  // that the word has
};

/// `remark` hears of a word of several tokens. Throws UsageError on one of no tokens and on one of the unknown token; field: what
/// the error begins with.
AnswerWord answer_word(const AnswerPlace& place, const char* field, const std::string& text,
                       const std::function<void(const std::string&)>& remark);

}  // namespace mh
