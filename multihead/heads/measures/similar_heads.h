// How alike the heads of all layers read, pair by pair, beside how alike equally sharp heads read by chance.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "multihead/base/interval.h"
#include "multihead/heads/corpus/observe_corpus.h"
#include "multihead/heads/measures/packed_weights.h"
#include "multihead/nn/attention_place.h"

namespace mh {

/// A mean over pairs of heads and over queries, with intervals over sentences (of kSimilarityFolds folds, base/interval.h).
struct PairsMean {
  int64_t pairs = 0;
  Interval divergence = {}, null_divergence = {};
  std::optional<Interval> ratio = std::nullopt;  // divergence / null_divergence; none where the latter is 0
  Interval difference = {};                      // divergence - null_divergence
};

/// Pairs of heads of one layer, of which some share their keys.
struct SharedKeysMean {
  PairsMean sharing = {}, others = {};
  Interval difference = {},
           null_difference = {};  // of divergence and null divergence: `others` minus `sharing`
};

struct ComparedLayer {
  std::string attention = {};
  int layer = 0;
  std::optional<PairsMean> within = std::nullopt;     // none with one head
  std::optional<PairsMean> to_others = std::nullopt;  // with the heads of other layers; none with one layer
  std::optional<SharedKeysMean> shared_keys =
      std::nullopt;  // none unless some heads, and not all, share keys
};

struct ComparedHead {
  std::string attention = {};
  int layer = 0;
  int head = 0;
  int key_head = 0;
  double entropy = 0;  // -sum a log a of a query's weights, nats; the mean

  std::string name() const { return attention + "." + std::to_string(head); }
};

/// The heads of all layers of one kind of attention.
struct ComparedHeads {
  AttentionKind kind = AttentionKind::kEncoderSelf;
  int64_t queries = 0;  // that were compared
  std::vector<ComparedHead> heads = {};
  /// [heads, heads]: Jensen-Shannon divergence of two heads' weights of a query, nats, 0 to log 2, the mean over queries; and
  /// when the weights of each are permuted at random.
  std::vector<double> divergence = {}, null_divergence = {};
  std::vector<ComparedLayer> layers = {};
  std::optional<PairsMean> within_layers = std::nullopt, between_layers = std::nullopt;
  std::optional<SharedKeysMean> shared_keys = std::nullopt;

  double divergence_of(size_t g, size_t h) const { return divergence[g * heads.size() + h]; }
  double null_of(size_t g, size_t h) const { return null_divergence[g * heads.size() + h]; }
};

/// Compares each pair of heads of a kind on every sentence. Sums are in double and in the order of the corpus, so neither
/// batching nor threads change the result.
class SimilarHeadsObserver : public CorpusObserver {
 public:
  struct Options {
    uint64_t seed = 1;  // of the permutations
    /// Memory of a batch's weights, of each kind.
    int64_t most_bytes = int64_t{256} << 20;
  };
  SimilarHeadsObserver(const std::vector<ComparedAttention>& attentions, const Options& options);

  /// Most tokens of a batch whose weights take no more than most_bytes. A longer sentence is a batch alone, and some of its
  /// queries are left out (compared_queries_step()).
  int64_t batch_tokens() const;

  void begin(const CorpusBlock& block) override;
  bool wants_weights(const Model::Attention&) const override { return true; }
  void weights(const BatchWeights& batch) override;

  /// By kind (encoder self, decoder self, cross); those whose weights were seen.
  std::vector<ComparedHeads> kinds() const;

 private:
  using Folds = std::array<double, kSimilarityFolds>;
  /// Summed over queries and some pairs of heads.
  struct PairSums {
    int64_t pairs = 0;
    Folds real{}, null{};
    void add(const PairSums& other);
  };
  struct HeadPair {
    int g = 0, h = 0;  // g < h
    bool share_keys = false;
  };
  /// The heads of two layers, or of one.
  struct LayerPair {
    size_t a = 0, b = 0;  // a <= b
    std::vector<HeadPair> pairs = {};
    PairSums sharing = {}, others = {};  // pairs that share their keys, and that do not
  };
  struct Kind {
    PackedWeights packed;
    Folds queries{};
    std::vector<double> entropies;   // [heads]
    std::vector<double> real, null;  // [heads, heads], g < h
    std::vector<LayerPair> layer_pairs;
  };
  static LayerPair pairs_of(const PackedWeights& heads, size_t a, size_t b);
  static void compare(Kind& kind);
  static void compare(Kind& kind, LayerPair& layers, const std::vector<double>& real_entropies,
                      const std::vector<double>& null_entropies);
  static PairsMean mean_of(const PairSums& sums, const Folds& queries);
  static SharedKeysMean shared_keys_of(const PairSums& sharing, const PairSums& others, const Folds& queries);
  static ComparedHeads compared(AttentionKind kind, const Kind& of);

  Options options_;
  int64_t first_ = 0;  // sentences before the block
  std::map<AttentionKind, Kind> kinds_;
};

}  // namespace mh
