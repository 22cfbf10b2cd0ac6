// Words w0, w1, ... whose tokens are their numbers.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "multihead/text/tokenizer_parts.h"

namespace mh::test {

inline Tokenizer numbered_tokenizer(int32_t words) {
  TokenizerParts parts;
  parts.model.kind = TokenModel::Kind::kWordLevel;
  for (int32_t id = 0; id < words; ++id) parts.model.vocabulary.emplace_back("w" + std::to_string(id), id);
  parts.model.unknown_token = "w0";
  parts.pre_tokenizers.push_back({.kind = PreTokenizerStep::Kind::kWhitespaceSplit});
  return Tokenizer(std::move(parts));
}

inline std::string numbered_words(const std::vector<int32_t>& ids) {
  std::string text;
  for (const int32_t id : ids) text += (text.empty() ? "w" : " w") + std::to_string(id);
  return text;
}

}  // namespace mh::test
