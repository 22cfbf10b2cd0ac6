// Circuits: a small set of edges between the heads and layers of a model that keeps a given share of its decision between two answers, and
// the proof by running the model with these edges alone. docs/heads/circuit.md
//
// Of each pair there is a clean text, on which the model prefers an answer to a wrong one, and a corrupt text of equally many tokens, on
// which it does not. In a run of some edges E (edge_passes.h) each target, e.g. the input of the queries of one head, reads from a source
// what that gives in this run where E has the edge, and what it gives for the corrupt text where not.
//
//   s(E)             score(answer) - score(wrong) of that run: s(all) is that of the clean text, s(none) that of the corrupt one
//   kept(E)          sum over pairs of (s(E) - s(none))  /  sum over pairs of (s(all) - s(none))
//   faithfulness     kept(C) of the circuit C: near 1 where it does what the model does
//   completeness     1 - kept(all edges but C): near 1 where nothing outside of it does that, too
//   effect of e      1 - kept(all edges but e): path patching of one edge, exact
//   score of e       an estimate of its effect from gradients (edge_scores.h)
//
// The circuit is the smallest number of edges with the largest absolute scores whose faithfulness is at least the share that was asked
// for, found by bisection; then without those that no way joins to both ends, and without those whose rest has the share, too. No other
// set of edges is tried: a smaller one may keep as much. Wang et al. 2022 ("Interpretability in the wild"), Conmy et al. 2023 ("Towards
// automated circuit discovery"), Syed et al. 2023, Hanna et al. 2024.
//
//   const mh::CircuitReport found = mh::heads_circuit(model, pairs, {.share = 0.8});
//   found.faithfulness.mean, found.completeness.mean;
//   for (const mh::CircuitEdge& edge : found.edges) edge.from, edge.to, edge.score;
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "multihead/base/enum_names.h"
#include "multihead/base/interval.h"
#include "multihead/batch/batch_tokens.h"
#include "multihead/folders/scored_model.h"
#include "multihead/heads/patching/heads_patch.h"
#include "multihead/nn/sites.h"
#include "multihead/text/text_languages.h"

namespace mh {

/// How far the work is: "scored", "pairs", 32 of so many; all: 0 where that is not known.
struct CircuitProgress {
  const char* verb;
  const char* things;
  int64_t done = 0, all = 0;
};

/// Which edges' effects are measured exactly.
enum class ExactEdges { kLargest, kRandom };
inline constexpr EnumNames<ExactEdges> kExactEdgesNames = {{"largest", ExactEdges::kLargest},
                                                           {"random", ExactEdges::kRandom}};

struct CircuitOptions {
  double share = 0.8;  // of the decision, that the circuit must keep
  int64_t steps = 5;   // of integrated gradients
  int64_t exact = 20;  // edges whose effects are measured exactly, too
  ExactEdges exact_of = ExactEdges::kLargest;
  int64_t most_pairs =
      50;  // the circuit is looked for and proved on so many pairs, the first; all of them give scores
  int64_t removals = 2000;   // runs at most in which single edges are left out of the circuit
  int64_t random = 1000;     // circuits of equally many edges, drawn at random
  int64_t random_pairs = 4;  // they are run on so many pairs, the first
  uint64_t seed = 1;         // of that draw, and of the edges that are measured exactly
  TextLanguages languages = {};
  int64_t max_batch_tokens = 512;  // of runs that go together; results depend on it only by rounding
  Sites* sites =
      nullptr;  // called in all runs, first, e.g. SiteValues that mute heads; sequence 0 is the text of each run
  std::function<void(const std::string&)> remark = nullptr;
  std::function<void(const CircuitProgress& progress)> progress = nullptr;

  template <class V>
  void visit(V& v) {
    constexpr const char* kGroup = "The circuit";
    v("share", share, {.low = 0.01, .high = 1},
      {.group = kGroup, .help = "Share of the decision that the circuit must keep"});
    v("steps", steps, {.low = 1, .high = 1000},
      {.group = kGroup,
       .help = "Runs between the corrupt and the clean text whose gradients give the scores"});
    v("exact", exact, {.low = 0, .high = 100'000},
      {.group = kGroup, .help = "Of so many edges measure the effect exactly, too"});
    v("exact_of", exact_of, kExactEdgesNames,
      {.group = kGroup,
       .help = "Which these are: those of the largest scores, or some that are drawn at random, which show "
               "whether scores and effects agree",
       .rare = true});
    v("most_pairs", most_pairs, {.low = 1, .high = 100'000},
      {.group = kGroup,
       .help = "Look for the circuit and prove it on the first so many pairs; all give scores",
       .rare = true});
    v("removals", removals, {.low = 0, .high = 10'000'000},
      {.group = kGroup,
       .help = "At most so many runs to find edges that the circuit does not need",
       .rare = true});
    v("random", random, {.low = 0, .high = 1'000'000},
      {.group = kGroup, .help = "Random circuits of the same size to compare with"});
    v("random_pairs", random_pairs, {.low = 1, .high = 100'000},
      {.group = kGroup, .help = "Run the random circuits on the first so many pairs", .rare = true});
    v("seed", seed, {}, {.group = kGroup, .help = "Seed of the random circuits and edges", .rare = true});
    visit_batch_tokens(v, max_batch_tokens);
    languages.visit(v);
  }
};

/// What the end of an edge is the input of.
enum class CircuitInput { kQueries, kKeys, kValues, kFeedForward, kStates };
inline constexpr EnumNames<CircuitInput> kCircuitInputNames = {{"queries", CircuitInput::kQueries},
                                                               {"keys", CircuitInput::kKeys},
                                                               {"values", CircuitInput::kValues},
                                                               {"feed_forward", CircuitInput::kFeedForward},
                                                               {"states", CircuitInput::kStates}};

struct CircuitEdge {
  std::string from = {};  // "decoder.embeddings", "decoder.3.self_attention.5", "decoder.3.feed_forward"
  std::string to = {};    // "decoder.4.self_attention.1.queries", "decoder.4.feed_forward", "decoder.states"
  CircuitInput input = CircuitInput::kStates;
  /// What is made of that input, by its name as in `from`: a head, or all heads of a group; of the last states themselves.
  std::vector<std::string> readers = {};
  int from_level = 0, to_level = 0;     // the numbers of their sublayers in the order of a pass
  double score = 0;                     // estimated share of the decision
  std::optional<Interval> effect = {};  // measured share, where it was
};

/// Circuits of equally many edges, drawn without repetition from all edges of the model.
struct RandomCircuits {
  int64_t count = 0, pairs = 0;
  double circuit = 0;  // faithfulness of the circuit on these pairs
  double mean = 0, most = 0;
  int64_t as_faithful = 0;  // how many are at least as faithful as the circuit
};

struct CircuitReport {
  PatchScore score = PatchScore::kLogProbability;
  int64_t pairs = 0, proved_pairs = 0;
  double clean = 0, corrupt = 0;  // mean scores of all pairs
  int64_t edges_of_model = 0;
  double share = 0;                     // that was asked for
  std::vector<CircuitEdge> edges = {};  // of the circuit, the largest absolute scores first
  int64_t strongest = 0;  // how many edges of the largest scores had the share, before edges were left out
  int64_t needed_pairs =
      0;  // on so many pairs each edge was left out in turn, and the rest kept less than the share; 0: not shown
  Interval faithfulness = {}, completeness = {};
  /// Faithfulness on so many further pairs, the next, on which the circuit was not looked for; 0: there were none.
  Interval faithfulness_elsewhere = {};
  int64_t pairs_elsewhere = 0;
  std::vector<CircuitEdge> exact = {};  // CircuitOptions::exact, the largest absolute scores first
  RandomCircuits random = {};
};

/// Reads pairs until next() gives none. Throws UsageError as read_patch_texts() does, naming the pair's number, from 1; when there is no
/// pair, and when the clean texts do not score at least kLeastPatchDifference more than the corrupt ones in the mean; on heads without
/// queries, keys and values of their own, on sites that the model does not have and on options out of their bounds; Error when a score is
/// not finite.
CircuitReport heads_circuit(const ScoredModel& model,
                            const std::function<std::optional<PatchQuestion>()>& next,
                            const CircuitOptions& options = {});
CircuitReport heads_circuit(const ScoredModel& model, std::span<const PatchQuestion> pairs,
                            const CircuitOptions& options = {});

}  // namespace mh
