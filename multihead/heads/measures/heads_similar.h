// Which heads read alike: `multihead heads similar`.
//
//   mh::TextCorpus corpus(text);
//   for (const mh::SimilarKind& kind : mh::heads_similar(folder, corpus).kinds) ... kind.compared.within_layers->ratio ...
#pragma once

#include <cstdint>
#include <vector>

#include "multihead/heads/corpus/observe_heads.h"
#include "multihead/heads/measures/average_linkage.h"
#include "multihead/heads/measures/similar_heads.h"

namespace mh {

struct SimilarOptions {
  ObserveHeadsOptions observe = {};  // batches are smaller where their weights would not fit
  SimilarHeadsObserver::Options compare = {};
  int32_t nearest = 3;          // heads that are named for each head, from 0
  double cluster_ratio = 0.25;  // SimilarKind::clusters; from 0, beyond 1 for C++ alone

  template <class V>
  void visit(V& v) {
    constexpr const char* kGroup = "Similarity";
    v("nearest", nearest, {.low = 0},
      {.group = kGroup, .help = "Heads that are named for each head, in JSON", .rare = true});
    v("cluster_ratio", cluster_ratio, {.low = 0, .high = 1},
      {.group = kGroup, .help = "Most divergence within a cluster, as a share of chance", .rare = true});
    v("seed", compare.seed, {}, {.group = kGroup, .help = "Seed of the permutations", .rare = true});
    observe.visit(v);
  }
};

/// The heads of all layers of one kind of attention, with what follows from their divergences. Heads are numbered as in
/// `compared`.
struct SimilarKind {
  ComparedHeads compared = {};
  /// Of each head the others with the smallest divergence, that first.
  std::vector<std::vector<int>> nearest = {};
  Dendrogram tree = {};  // by average linkage of the divergence
  /// Of each merge the mean null divergence of the heads that it joined.
  std::vector<double> null_heights = {};
  /// The largest clusters of the tree in which every merge joined heads whose mean divergence is at most
  /// SimilarOptions::cluster_ratio of their mean null divergence: they read much more alike than equally sharp heads do by
  /// chance, however sharp they are.
  std::vector<int> clusters = {};
};

struct SimilarReport {
  CorpusRead read = {};
  uint64_t seed = 0;
  double cluster_ratio = 0;
  std::vector<SimilarKind> kinds = {};
};

/// Throws UsageError on options out of range, and as observe_heads() does.
SimilarReport heads_similar(const ModelFolder& folder, HeadsCorpus& corpus,
                            const SimilarOptions& options = {});

}  // namespace mh
