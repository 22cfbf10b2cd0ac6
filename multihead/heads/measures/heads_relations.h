// Which heads follow which grammatical relations: `multihead heads relations`. The measure is that of relations.h. Heads are chosen on
// every other sentence and scored on the rest, beside the best fixed offset and the best of as many heads with random weights.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "multihead/heads/corpus/observe_heads.h"
#include "multihead/heads/measures/dependency_probe.h"
#include "multihead/heads/measures/relations.h"

namespace mh {

struct RelationsOptions {
  ObserveHeadsOptions observe = {};
  int64_t least_support = 10;  // words on each half, from 1
  bool random = true;          // the heads with random weights too
  uint64_t seed = 1;           // of these
  int32_t probe_epochs = 0;    // passes over the half that the probe learns from; 0: no probe

  template <class V>
  void visit(V& v) {
    constexpr const char* kGroup = "Relations";
    v("probe", probe_epochs, {.low = 0},
      {.group = kGroup,
       .help =
           "Learn a mix of all heads that finds the trees, by so many passes over half of the sentences"});
    v("least_support", least_support, {.low = 1},
      {.group = kGroup, .help = "Leave relations of fewer words on either half out", .rare = true});
    v("seed", seed, {}, {.group = kGroup, .help = "Seed of the heads with random weights", .rare = true});
    observe.visit(v);
  }
};

/// Of the attention-only probe (dependency_probe.h).
struct ProbeScore {
  int64_t words = 0, right = 0;
  std::vector<DependencyProbe::Head> heads = {};
  double score() const { return words > 0 ? static_cast<double>(right) / static_cast<double>(words) : 0; }
};

struct RelationsReport {
  CorpusRead read = {};
  /// RelationScorer::chosen_and_scored() of the model and of the heads with random weights.
  std::vector<RelationScore> chosen = {}, random = {};
  /// RelationScorer::scores() on all sentences, on the half that heads are chosen on, and on the other; in the same order.
  std::vector<RelationScore> all = {}, on_chosen = {}, on_scored = {};
  std::optional<ProbeScore> probe = std::nullopt, random_probe = std::nullopt;
};

/// The same model with the numbers of every matrix and bias that makes queries and keys in another order (seeded): heads of the same
/// shape with random weights, whose inputs still have their sizes.
std::unique_ptr<Model> with_random_queries_and_keys(Model& model, uint64_t seed);

/// The corpus needs trees (HeadsText::source_trees, target_trees). Throws UsageError when it has none and on
/// options out of range, and as observe_heads() does.
RelationsReport heads_relations(const ModelFolder& folder, HeadsCorpus& corpus,
                                const RelationsOptions& options = {});

}  // namespace mh
