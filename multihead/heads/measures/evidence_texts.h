// The tokens that the queries and keys of a corpus stand for, and where they are in its text.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "multihead/heads/sites/words.h"
#include "multihead/nn/attention_place.h"

namespace mh {

struct CorpusBlock;

/// A token in a sentence.
struct EvidenceToken {
  int32_t id = 0;
  std::string token = {};      // as people read it (Tokenizer::shown())
  std::string word = {};       // that it is a part of; empty where words are not known, and of white space
  int32_t begin = 0, end = 0;  // its characters (code points) [begin, end) of the sentence's text

  /// The word, or the token where words are not known.
  const std::string& form() const { return word.empty() ? token : word; }
};

/// The tokens of the sentences, special tokens left out, numbered in the order in which they come.
struct DistinctTokens {
  std::unordered_map<int32_t, int32_t> number_of = {};  // by id
  std::vector<int32_t> ids = {};
  std::vector<int64_t> counts = {};  // how often each occurs

  size_t size() const { return ids.size(); }
  /// Counts the token once more, and returns its number.
  int32_t add(int32_t id);
};

/// One side of a sentence: its text and tokens. A greedy translation has no text but its tokens, with spaces between them; a pair's
/// texts have kBetweenPair between them.
struct EvidenceSide {
  std::shared_ptr<const std::string> text = {};
  std::vector<int32_t> numbers = {};  // of each token in DistinctTokens; -1: a special token
  std::vector<std::pair<int32_t, int32_t>> offsets = {};  // characters of the text
  WordOfToken words = {};                                 // empty: not known
  bool has_special = false;

  /// The token's place and word; its `id` and `token` are the caller's to fill in.
  EvidenceToken place_of(size_t token) const;
};
inline constexpr const char* kBetweenPair = " ||| ";

/// What the positions of an attention's queries or keys are.
struct EvidencePositions {
  const EvidenceSide* side = nullptr;
  int64_t shift = 0;  // position p is token p - shift

  /// The token's number; -1 where a special token is.
  int32_t number_at(int64_t position) const {
    const int64_t token = position - shift;
    return token >= 0 && token < std::ssize(side->numbers) ? side->numbers[static_cast<size_t>(token)] : -1;
  }
  /// Whether the position may be a key: the first token of a text without special tokens is not, since weight that goes
  /// nowhere rests on it.
  bool is_key(int64_t position) const {
    return number_at(position) >= 0 && (position > 0 || side->has_special || shift > 0);
  }
};

class EvidenceTexts {
 public:
  using Label = std::function<std::string(int32_t)>;
  /// target_label: shows a target token; of greedy translations only.
  explicit EvidenceTexts(Label target_label = nullptr) : target_label_(std::move(target_label)) {}

  void begin(const CorpusBlock& block);
  /// Of sentence i of the block. A query of cross-attention stands for the target token that it predicts, one of the decoder's
  /// self-attention for the token that it has read.
  EvidencePositions queries(AttentionKind kind, size_t i) const;
  EvidencePositions keys(AttentionKind kind, size_t i) const;
  const DistinctTokens& query_tokens(AttentionKind kind) const;
  const DistinctTokens& key_tokens(AttentionKind kind) const;
  int64_t line(size_t i) const { return lines_[i]; }

 private:
  bool on_source(AttentionKind kind, bool key) const;
  int shift_of(AttentionKind kind) const;

  Label target_label_;
  bool causal_ = false;
  bool one_text_ = true;  // both stacks of a classifier read the same
  std::vector<int64_t> lines_;
  std::vector<EvidenceSide> sources_, targets_;  // of the block
  DistinctTokens source_tokens_, target_tokens_;
};

}  // namespace mh
