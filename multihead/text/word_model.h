// WordModel: the model of a tokenizer, WordLevel, WordPiece, BPE or Unigram. It splits a word into the tokens
// of the vocabulary.
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
#include "multihead/text/scored_bpe.h"
#include "multihead/text/tokenizer_parts.h"
#include "multihead/text/unigram.h"
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
  /// Whether an unknown piece is called by its text rather than by the unknown token's name, as in Unigram.
  bool names_unknown_by_text() const { return unigram_ || scored_bpe_; }

 private:
  void append_scored(std::string_view text, std::vector<Symbol>& pieces) const;
  void append_unknown_run(std::string_view run, std::vector<Symbol>& pieces) const;
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
  std::optional<Unigram> unigram_;
  std::optional<ScoredBpe> scored_bpe_;
  std::vector<int32_t> piece_ids_;  // of the model's scored pieces
  int32_t unknown_piece_ = -1;  // the unknown token written in a text is as good as unknown; -1: not in use
  bool looks_up_unknown_;
  bool sentencepiece_;

  mutable std::shared_mutex mutex_;
  mutable std::unordered_map<std::string, std::vector<Symbol>, StringHash, std::equal_to<>> known_words_;
};

}  // namespace mh
