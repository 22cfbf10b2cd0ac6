// What a head is seen to do on a corpus: the sentences in which it is most sure, the tokens that it reads and is sure at more often
// than chance would have it, and the heads that choose the same keys.
//
// Only tokens of the text count. A query's keys are the tokens that it may read, but for itself; in a text without special tokens
// the first token is no key, since weight that goes nowhere rests on it. The query's choice is the key with the largest weight (ties: the
// first). docs/heads/where.md has the formulas.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "multihead/heads/corpus/observe_corpus.h"
#include "multihead/heads/measures/evidence_texts.h"
#include "multihead/heads/measures/head_agreement.h"
#include "multihead/kernels/mask.h"
#include "multihead/nn/attention_place.h"
#include "multihead/nn/head_name.h"

namespace mh {

/// A sentence, and the query and key in it between which the head's weight is largest.
struct EvidenceSentence {
  int64_t line = 0;     // of the corpus, from 1
  double strength = 0;  // that weight
  EvidenceToken query = {}, key = {};
  /// What their characters are counted in; in self-attention the same text.
  std::shared_ptr<const std::string> query_text = {}, key_text = {};
};

/// A token against chance.
struct TokenShare {
  int32_t id = 0;
  std::string token = {};
  int64_t count = 0;        // of keys: queries that chose it; of queries: those at which the head was sure
  int64_t occurrences = 0;  // in the corpus; of queries: those that have keys
  double share = 0;         // count divided by the count of all tokens
  double expected =
      0;  // of keys: its share if queries chose evenly among their keys; of queries: its share of all queries
  double weight = 0;  // of keys: mean weight of these choices; of queries: count / occurrences

  double lift() const { return share / expected; }
  /// share log(share / expected), its part of the Kullback-Leibler divergence: often and more often than expected.
  double score() const;
};

struct HeadLike {
  HeadName head = {};
  int layer = 0;         // of its attention
  double agreement = 0;  // queries for which both choose the same key
  double by_chance = 0;  // agreement of two heads that choose evenly
};

struct HeadEvidence {
  static constexpr size_t kBins = 20;

  std::string attention = {};
  AttentionPlace place = {};
  int head = 0;
  int64_t queries = 0;  // that have keys
  int64_t sure = 0;     // of these: whose choice has at least the weight EvidenceOptions::sure
  std::array<int64_t, kBins> strengths = {};  // sentences by strength, each bin 1/20 wide
  /// The strongest sentence of each pair of words (query's and key's, in lower case), strongest first; ties: the earlier sentence.
  std::vector<EvidenceSentence> strongest = {};
  /// The first sentences of the corpus whose strength is in the bin of the median.
  std::vector<EvidenceSentence> usual = {};
  std::vector<TokenShare> key_tokens = {}, query_tokens = {};  // by score, those with a lift above 1
  std::vector<HeadLike> alike = {};                            // of the same kind, by agreement

  std::string name() const { return attention + "." + std::to_string(head); }
  int64_t sentences() const;
  /// The strength that this share of sentences stays below, interpolated within its bin; none without sentences.
  std::optional<double> quantile(double share) const;
};

struct EvidenceOptions {
  std::vector<HeadPattern> heads = {};  // which; empty: all
  // At most 1000 each, at least 0:
  int32_t sentences = 10, usual = 3;  // most that are kept of a head
  int32_t tokens = 10;                // most on each side
  int32_t alike = 5;
  int64_t least_count = 10;  // occurrences of a token in the corpus, from 1
  double sure = 0.5;         // the weight from which on a head is sure, from 0 to 1

  /// All but `heads`.
  template <class V>
  void visit(V& v) {
    constexpr const char* kGroup = "Evidence";
    constexpr int32_t kMost = 1000;
    v("sentences", sentences, {.low = 0, .high = kMost},
      {.group = kGroup, .help = "Sentences shown of a head: those whose largest weight is largest"});
    v("usual", usual, {.low = 0, .high = kMost},
      {.group = kGroup, .help = "Sentences shown whose largest weight is about the median"});
    v("tokens", tokens, {.low = 0, .high = kMost},
      {.group = kGroup, .help = "Tokens shown that are read, or read from, more often than chance"});
    v("least_count", least_count, {.low = 1},
      {.group = kGroup, .help = "Leave tokens out that occur less often in the corpus", .rare = true});
    v("sure", sure, {.low = 0, .high = 1},
      {.group = kGroup, .help = "A query is sure when its largest weight is at least this", .rare = true});
    v("alike", alike, {.low = 0, .high = kMost},
      {.group = kGroup, .help = "Heads that choose the same keys most often", .rare = true});
  }
};

/// What the observer has to know of the model.
struct EvidenceModel {
  std::vector<HeadName> heads = {};    // which are asked for; empty: all
  std::set<AttentionKind> kinds = {};  // of the attentions of these heads
  /// Of an attention; null: a decoder's queries see themselves and what is before them, others everything.
  std::function<Mask(std::string_view)> mask = nullptr;
  EvidenceTexts::Label target_label = nullptr;  // of greedy translations
};

/// Memory grows with the heads that are asked for times the distinct tokens of the corpus. Sums are in the order of the corpus,
/// so that neither batching nor threads change the result.
class HeadEvidenceObserver : public CorpusObserver {
 public:
  /// Throws UsageError on options out of range.
  explicit HeadEvidenceObserver(EvidenceOptions options, EvidenceModel model = {});

  void begin(const CorpusBlock& block) override { texts_.begin(block); }
  bool wants_weights(const Model::Attention& attention) const override;
  void weights(const BatchWeights& batch) override;

  /// Of the heads that were asked for, sorted by kind (encoder self, decoder self, cross), layer and head. Tokens have only ids. The
  /// corpus is at its end.
  std::vector<HeadEvidence> heads();

 private:
  struct Candidate {
    EvidenceSentence sentence = {};
    std::string pair = {};  // the words, in lower case
  };
  struct OfHead {
    bool wanted = false;
    int64_t sure = 0;
    double choices_weight = 0;  // of all queries
    std::array<int64_t, HeadEvidence::kBins> strengths = {};
    std::vector<Candidate> strongest = {};                                       // sorted
    std::array<std::vector<EvidenceSentence>, HeadEvidence::kBins> by_bin = {};  // the first of each
    std::vector<int32_t> chosen = {};                                            // of each key token
    std::vector<double> chosen_weight = {};
    std::vector<int32_t> sure_at = {};  // of each query token
  };
  struct OfAttention {
    std::string name = {};
    Mask mask = {};
    int64_t queries = 0;
    double even_agreement = 0;              // sum of 1 / keys over queries
    std::vector<double> even_choices = {};  // of each key token: how often it would be chosen
    std::vector<int64_t> queries_of = {};   // of each query token
    std::vector<OfHead> heads = {};
  };
  struct Choices;
  OfAttention& attention_of(const BatchWeights& batch, const AttentionPlace& place);
  void choose(const BatchWeights& batch, int s, AttentionKind kind, const Mask& mask, Choices& choices) const;
  void add_head(const BatchWeights& batch, const Choices& choices, AttentionKind kind, int h,
                OfHead& head) const;
  void add_sentence(OfHead& head, AttentionKind kind, size_t sentence, double strength, int64_t query,
                    int64_t key) const;
  EvidenceSentence evidence(AttentionKind kind, size_t sentence, double strength, int64_t query,
                            int64_t key) const;
  HeadEvidence result(AttentionPlace place, const OfAttention& attention, size_t h) const;

  EvidenceOptions options_;
  EvidenceModel model_;
  EvidenceTexts texts_;
  std::map<std::pair<AttentionKind, int>, OfAttention> attentions_;
  std::map<AttentionKind, HeadAgreement> agreement_;
};

}  // namespace mh
