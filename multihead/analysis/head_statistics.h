// What every head does with its weights, added up over a corpus.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "multihead/analysis/attention_name.h"
#include "multihead/analysis/observe_corpus.h"

namespace mh {

/// One head. With a the weights of a query i over the keys j; means are over all queries of the corpus, each
/// counted the same, unless said. In cross-attention i and j are positions as they are, in the decoder's
/// input (the start token is 0) and in the source.
struct HeadFigures {
  static constexpr int kReach = 3;  // offsets from -kReach to +kReach
  static constexpr size_t kOffsets = 2 * kReach + 1;

  std::string attention;  // "encoder.3.self_attention"
  int head = 0;
  int64_t queries = 0;
  double entropy = 0;  // -sum a log a, nats
  /// Entropy over log(keys that the query may see: i + 1 in the decoder's self-attention), 0 to 1; the mean
  /// over the queries that see more than one.
  double entropy_share = 0;
  double distance = 0;                       // sum a |i - j|
  std::array<double, kOffsets> at_offset{};  // weight on key j = i + offset; no such key counts as 0
  /// How often that key has the largest weight (ties: the first key), over the queries that can see it.
  std::array<double, kOffsets> most_at_offset{};
  /// Weight on the end token, the source's last key. The decoder's input has none: there it is the start
  /// token, key 0.
  double on_end = 0;
  /// How like the layer's other heads it is: means over them of HeadSimilarity's numbers. None when it has no
  /// other.
  std::optional<double> cosine, divergence;

  std::string name() const { return attention + "." + std::to_string(head); }
};

/// Two heads of one attention, [heads, heads] row by row.
struct HeadSimilarity {
  std::string attention;
  int heads = 0;
  std::vector<double> cosine;      // of the two weight matrices of a sentence; the mean over sentences
  std::vector<double> divergence;  // Jensen-Shannon, nats, 0 to log 2, of two rows; the mean over queries
};

/// Adds up in double, in the order of the corpus: neither batches nor threads change a bit.
class HeadStatistics : public CorpusObserver {
 public:
  void begin_batch(std::span<const int64_t>) override {}
  bool wants_weights(std::string_view) const override { return true; }
  void weights(const ObservedWeights& observed) override;

  /// By kind (encoder self, decoder self, cross), layer and head.
  std::vector<HeadFigures> heads() const;
  std::vector<HeadSimilarity> similarities() const;

 private:
  struct HeadSums {
    double entropy = 0, entropy_share = 0, distance = 0, on_end = 0;
    std::array<double, HeadFigures::kOffsets> at_offset{};
    std::array<int64_t, HeadFigures::kOffsets> most_at_offset{};
    void add(const HeadSums& other);
  };
  struct Sums {
    int heads = 0;
    int64_t sequences = 0, queries = 0, seeing_many = 0;
    std::array<int64_t, HeadFigures::kOffsets> seeing_offset{};
    std::vector<HeadSums> of_head;
    std::vector<double> cosine, divergence;  // of the pairs g < h
    explicit Sums(int heads = 0);
    void add(const Sums& other);
  };
  static Sums sums_of(AttentionKind kind, ConstMatrixView first, int heads);

  using Key = std::pair<AttentionKind, int>;
  std::map<Key, Sums> sums_;
  std::map<Key, std::string> names_;
};

}  // namespace mh
