// Roles and patterns of heads, by stated thresholds.
//
// Roles after Voita, Talbot, Moiseev, Sennrich and Titov 2019, "Analyzing Multi-Head Self-Attention", section 5: a head is
// *positional* when at least 90 % of its queries read most at one offset (HeadFigures::most_at_offset), and a *rare word* head when
// it reads most the rarest word of the sentence, by the counts of the corpus. (Their third role, syntactic, is measured by
// relations.h.)
//
// Patterns after Kovaleva, Romanov, Rogers and Rumshisky 2019, "Revealing the Dark Secrets of BERT", section 4.1. They trained a
// classifier on 400 maps that they had labelled; here fixed limits on shares of the weights decide, so that figures need not agree.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "multihead/heads/corpus/heads_corpus.h"
#include "multihead/heads/corpus/observe_corpus.h"
#include "multihead/nn/attention_place.h"

namespace mh {

/// How often the words of a corpus occur (words_in(), case and all).
class WordCounts {
 public:
  void add(const HeadsText& text);
  int64_t of(const std::string& form) const;

 private:
  std::map<std::string, int64_t, std::less<>> counts_;
};

/// Of the weights of a head on one sentence of self-attention, with S the mean share that a query gives to special tokens (of a
/// text without any, to the first token) and N that which it gives to its neighbours at -1 and +1:
enum class AttentionPattern {
  kVertical,  // S >= 1/2
  kDiagonal,  // N >= 1/2
  kBoth,      // neither, but both >= 1/4 and S + N >= 3/4
  kBlock,  // none of these; of a pair of texts: at least 4/5 of a word's weight on words is on its own text
  kHeterogeneous,  // none
};
constexpr size_t kAttentionPatterns = 5;
/// "vertical", "diagonal", "vertical+diagonal", "block", "heterogeneous".
std::string_view name_of(AttentionPattern pattern);
/// Maps of fewer tokens say little: even weights are both vertical and diagonal.
constexpr int64_t kLeastTokensOfPattern = 10;

struct HeadRoles {
  std::string attention;
  int head = 0;
  /// How many of the queries (that are words, in self-attention) read most a token of the sentence's rarest word (of equally rare ones
  /// any), and how many would if each token were read as often as any other. None where the keys' words are not
  /// known: in the decoder of a translator.
  std::optional<double> on_rarest, rarest_by_chance;
  /// The share of sentences, of at least kLeastTokensOfPattern tokens, that have each pattern; all 0 in cross-attention.
  std::array<double, kAttentionPatterns> patterns{};

  std::string name() const { return attention + "." + std::to_string(head); }
  /// The most frequent; none without such sentences.
  std::optional<AttentionPattern> pattern() const;
};

/// The corpus must be read with words (ObserveHeadsOptions::words).
class HeadRoleObserver : public CorpusObserver {
 public:
  /// REQUIRES: counts outlive this.
  explicit HeadRoleObserver(const WordCounts& counts) : counts_(counts) {}

  void begin(const CorpusBlock& block) override;
  bool wants_weights(const Model::Attention&) const override { return true; }
  void weights(const BatchWeights& batch) override;

  /// Sorted as HeadStatistics::heads().
  std::vector<HeadRoles> heads() const;

 private:
  struct HeadSums {
    int64_t on_rarest = 0;
    std::array<int64_t, kAttentionPatterns> patterns{};
  };
  struct Sums {
    std::string attention = {};
    int64_t queries = 0, maps = 0;
    double by_chance = 0;
    std::vector<HeadSums> heads = {};
  };
  /// What is known of a sentence's source tokens.
  struct Sentence {
    std::vector<char> is_word, is_rarest, is_special;
    int64_t words = 0, rarest = 0;  // tokens
    int64_t second_text = 0;        // where the second text of a pair begins; 0: there is none
  };
  Sums sums_of(AttentionKind kind, const BatchWeights& batch, int s) const;

  const WordCounts& counts_;
  bool causal_ = false;
  std::vector<Sentence> sentences_;  // of the block
  std::map<std::pair<AttentionKind, int>, Sums> sums_;
};

}  // namespace mh
