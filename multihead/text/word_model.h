// WordModel: the model of a tokenizer, WordLevel, WordPiece or BPE. It splits a word into the tokens of the
// vocabulary.
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
#include "multihead/text/word_piece.h"

namespace mh {

/// Lets a map with std::string keys be searched for a std::string_view.
struct StringHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
};
using Vocabulary = std::unordered_map<std::string, int32_t, StringHash, std::equal_to<>>;

/// Any number of threads may use it at once. It caches the pieces of words, up to a bound.
class WordModel {
 public:
  /// Throws FormatError naming `model.merges[i]` when a merge uses or makes an unknown token.
  explicit WordModel(const TokenModel& model);

  /// Appends the pieces of a word. Throws FormatError when a vocabulary of words or of WordPiece has neither
  /// the word nor an unknown token.
  void tokenize(std::string_view word, std::vector<Symbol>& pieces) const;
  std::optional<int32_t> id_of(std::string_view token) const;
  std::optional<int32_t> unknown_id() const { return unknown_; }

 private:
  void append_unknown_word(std::string_view word, std::vector<Symbol>& pieces) const;
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
  std::optional<WordPiece> word_piece_;

  mutable std::shared_mutex mutex_;
  mutable std::unordered_map<std::string, std::vector<Symbol>, StringHash, std::equal_to<>> known_words_;
};

}  // namespace mh
