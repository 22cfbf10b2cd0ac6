// The model of a tokenizer: one word in, its pieces out. WordLevel or BPE.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "multihead/text/bpe.h"
#include "multihead/text/tokenizer_parts.h"

namespace mh {

/// Lets a map of strings be asked for string views.
struct StringHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
};
using Vocabulary = std::unordered_map<std::string, int32_t, StringHash, std::equal_to<>>;

/// Thread-safe: words met before are remembered, up to a bound.
class WordModel {
 public:
  /// Throws FormatError naming `model.merges[i]` when a merge uses or makes an unknown token.
  explicit WordModel(const TokenModel& model);

  /// Appends the pieces of a word. Throws FormatError when a word-level vocabulary knows neither it nor an
  /// unknown token.
  void tokenize(std::string_view word, std::vector<Symbol>& pieces) const;
  std::optional<int32_t> id_of(std::string_view token) const;
  std::optional<int32_t> unknown_id() const { return unknown_; }

 private:
  void split_word(std::string_view word, std::vector<Symbol>& symbols) const;
  void append_characters(std::string_view word, std::vector<Symbol>& symbols) const;
  bool append_bytes(std::string_view character, std::vector<Symbol>& symbols) const;

  TokenModel::Kind kind_;
  std::string prefix_;
  std::string suffix_;
  bool fuse_unknown_;
  bool byte_fallback_;
  bool ignore_merges_;
  Vocabulary vocabulary_;
  std::optional<int32_t> unknown_;
  MergeTable merges_;

  mutable std::shared_mutex mutex_;
  mutable std::unordered_map<std::string, std::vector<Symbol>, StringHash, std::equal_to<>> known_words_;
};

}  // namespace mh
