// HeadStatistics: numbers that describe what each head does with its weights, averaged over a corpus:
// entropy, distance, weight on neighbours and on the end token, similarity to other heads. It sees the
// weights of every attention batch after batch (observe_corpus.h) and keeps only sums.
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

#include "multihead/heads/corpus/observe_corpus.h"
#include "multihead/nn/attention_place.h"

namespace mh {

struct AttentionRow;
enum class KeysSeen;

/// The figures of one head. Below, a are the weights of query i over the keys j. Means are over all queries
/// of the corpus, each counted once, unless stated otherwise. In cross-attention i is the position in the
/// decoder's input (the start token is 0) and j the position in the source.
struct HeadFigures {
  static constexpr int kReach = 3;  // offsets from -kReach to +kReach
  static constexpr size_t kOffsets = 2 * kReach + 1;

  std::string attention;  // "encoder.3.self_attention"
  AttentionPlace place = {};
  int head = 0;
  int64_t queries = 0;
  double entropy = 0;  // -sum a log a, nats
  /// Entropy divided by its maximum, log(number of keys that the query may see), 0 to 1; in the decoder's
  /// self-attention that number is i + 1. The mean is over the queries that see more than one key.
  double entropy_share = 0;
  double distance = 0;                       // sum a |i - j|
  std::array<double, kOffsets> at_offset{};  // weight on key j = i + offset; 0 if there is no such key
  /// How often that key has the largest weight (ties: the first key), among the queries that can see it.
  std::array<double, kOffsets> most_at_offset{};
  /// Weight on the end token, the last key of the source. In the decoder's self-attention, which has no end
  /// token, weight on the start token, key 0.
  double on_end = 0;
  double on_first = 0;       // weight on key 0
  double on_separators = 0;  // weight on the special tokens behind key 0: [SEP], </s>
  /// How similar it is to the other heads of its layer: the means over them of the numbers of
  /// HeadSimilarity. None when it is the only head.
  std::optional<double> cosine, divergence;

  std::string name() const { return attention + "." + std::to_string(head); }
};

/// The similarity of any two heads of one attention: matrices [heads, heads], row by row.
struct HeadSimilarity {
  std::string attention;
  int heads = 0;
  std::vector<double> cosine;  // cosine of the two weight matrices of a sentence; the mean over sentences
  /// Jensen-Shannon divergence of two rows, nats, 0 to log 2; the mean over queries.
  std::vector<double> divergence;
};

/// Sums over queries are in double and in the order of the corpus, so neither batching nor threads change the result.
class HeadStatistics : public CorpusObserver {
 public:
  /// Comparing the heads of a layer takes longer than all other figures.
  enum class Compare { kHeadsOfLayer, kNothing };
  explicit HeadStatistics(Compare compare = Compare::kHeadsOfLayer) : compare_(compare) {}

  void begin(const CorpusBlock& block) override { block_ = &block; }
  bool wants_weights(const Model::Attention&) const override { return true; }
  void weights(const BatchWeights& batch) override;

  /// Sorted by kind (encoder self, decoder self, cross), layer and head.
  std::vector<HeadFigures> heads() const;
  std::vector<HeadSimilarity> similarities() const;

 private:
  struct HeadSums {
    double entropy = 0, entropy_share = 0, distance = 0, on_end = 0, on_first = 0, on_separators = 0;
    std::array<double, HeadFigures::kOffsets> at_offset{};
    std::array<int64_t, HeadFigures::kOffsets> most_at_offset{};
    void add(const HeadSums& other);
  };
  struct Sums {
    int heads = 0;
    int64_t sequences = 0, queries = 0, seeing_many = 0;
    std::array<int64_t, HeadFigures::kOffsets> seeing_offset{};
    std::vector<HeadSums> of_head;
    std::vector<double> cosine, divergence;  // of the pairs of heads g < h
    explicit Sums(int heads = 0);
    void add(const Sums& other);
  };
  Sums sums_of(AttentionKind kind, const BatchWeights& batch, int s) const;
  static void compare_heads(const BatchWeights& batch, int s, KeysSeen seen,
                            std::span<const AttentionRow> rows, Sums& sums);

  Compare compare_;
  const CorpusBlock* block_ = nullptr;
  using Key = std::pair<AttentionKind, int>;
  std::map<Key, Sums> sums_;
  std::map<Key, std::string> names_;
};

}  // namespace mh
