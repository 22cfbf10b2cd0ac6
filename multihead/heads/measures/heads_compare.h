// What a training changes in heads: the same heads of a model before and after it, on the same texts and by their weights.
// `multihead heads compare`.
//
//   mh::TextCorpus corpus(text);
//   for (const mh::ChangedHead& head : mh::heads_compare(before, after, corpus).heads) ... head.divergence.mean ...
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "multihead/base/interval.h"
#include "multihead/heads/corpus/observe_heads.h"

namespace mh {

struct CompareOptions {
  ObserveHeadsOptions observe = {};  // batches are smaller where their weights would not fit
  uint64_t seed = 1;                 // of the permutations
  /// Memory of a batch's weights, of each kind of attention and each model.
  int64_t most_bytes = int64_t{256} << 20;

  template <class V>
  void visit(V& v) {
    v("seed", seed, {}, {.group = "Comparison", .help = "Seed of the permutations", .rare = true});
    observe.visit(v);
  }
};

/// A head before and after. Means are over queries, intervals over sentences.
struct ChangedHead {
  std::string attention = {};
  int head = 0;
  double entropy_before = 0, entropy_after = 0;  // -sum a log a of a query's weights, nats
  /// Jensen-Shannon divergence of a query's weights before and after, nats, 0 to log 2; and when both are permuted at random.
  Interval divergence = {}, null_divergence = {};
  std::optional<Interval> ratio = std::nullopt;  // divergence / null_divergence; none where the latter is 0
  /// ||W' - W|| / ||W|| (Frobenius) of W_QK = W_Q W_K^T and W_OV = W_V W_O, norms folded in as heads_circuits.h says: they do not
  /// depend on the basis of a head. None where heads have no such matrices, or W is 0.
  std::optional<double> qk_change = std::nullopt, ov_change = std::nullopt;

  std::string name() const { return attention + "." + std::to_string(head); }
};

struct CompareReport {
  CorpusRead read = {};
  uint64_t seed = 0;
  std::string after = {};               // the folder of the model after
  std::vector<ChangedHead> heads = {};  // by attention, in the order of the model
};

/// The tokens, and greedy translations where the corpus has no targets, are those of `before`. Throws UsageError when the models do
/// not have the same attentions with the same heads, or another tokenizer or vocabulary, and as observe_heads() does.
CompareReport heads_compare(const ModelFolder& before, const ModelFolder& after, HeadsCorpus& corpus,
                            const CompareOptions& options = {});

}  // namespace mh
