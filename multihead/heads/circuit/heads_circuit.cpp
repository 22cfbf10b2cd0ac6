#include "multihead/heads/circuit/heads_circuit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "multihead/base/error.h"
#include "multihead/heads/circuit/circuit_search.h"
#include "multihead/heads/circuit/edge_scores.h"
#include "multihead/io/check_option.h"

namespace mh {
namespace {

/// Pairs that are read together.
constexpr size_t kPairsAtOnce = 32;

/// Pairs with the scores of their texts.
struct ScoredPairs {
  std::vector<CircuitPair> pairs = {};
  std::vector<double> clean = {}, corrupt = {};

  double clean_sum() const { return std::accumulate(clean.begin(), clean.end(), 0.0); }
  double corrupt_sum() const { return std::accumulate(corrupt.begin(), corrupt.end(), 0.0); }
};

struct ReadPairs {
  ScoredPairs first = {}, next = {};  // CircuitOptions::most_pairs of them, and as many more
  int64_t count = 0;
  double clean_sum = 0, corrupt_sum = 0;  // of all
};

/// Reads a pair; what is wrong with it names its number.
CircuitPair read_pair(const CircuitTexts& texts, const PatchQuestion& question, int64_t number,
                      const CircuitOptions& options) {
  try {
    return texts.read(question, options.languages, options.remark, options.sites);
  } catch (const UsageError& error) {
    throw UsageError(fmt::format("pair {}: {}", number, error.what()));
  } catch (const FormatError& error) {
    throw FormatError(fmt::format("pair {}: {}", number, error.what()));
  }
}

ReadPairs read_and_score(const std::function<std::optional<PatchQuestion>()>& next, const CircuitTexts& texts,
                         const EdgePasses& passes, EdgeScores& scores, const CircuitOptions& options) {
  ReadPairs all;
  for (bool more = true; more;) {
    std::vector<CircuitPair> some;
    while (some.size() < kPairsAtOnce) {
      const std::optional<PatchQuestion> question = next();
      more = question.has_value();
      if (!more) break;
      some.push_back(read_pair(texts, *question, all.count + std::ssize(some) + 1, options));
    }
    scores.add(some);
    const std::vector<double> clean = passes.plain_scores(some, false),
                              corrupt = passes.plain_scores(some, true);
    for (size_t i = 0; i < some.size(); ++i) {
      all.clean_sum += clean[i];
      all.corrupt_sum += corrupt[i];
      ++all.count;
      if (all.count > 2 * options.most_pairs) continue;
      ScoredPairs& kept = all.count > options.most_pairs ? all.next : all.first;
      kept.pairs.push_back(std::move(some[i]));
      kept.clean.push_back(clean[i]);
      kept.corrupt.push_back(corrupt[i]);
    }
    if (options.progress) options.progress({"scored", "pairs", all.count});
  }
  return all;
}

void check_difference(double clean, double corrupt, int64_t pairs) {
  const auto count = static_cast<double>(pairs);
  if (clean - corrupt >= kLeastPatchDifference * count) return;
  throw UsageError(
      fmt::format("over {} {} the answer is ahead by {:.6f} after clean texts and by {:.6f} after corrupt "
                  "ones, in the mean: {}",
                  pairs, pairs == 1 ? "pair" : "pairs", clean / count, corrupt / count,
                  clean - corrupt <= -kLeastPatchDifference * count
                      ? "the corrupt texts favour it; exchange the clean and the corrupt text, or the answers"
                      : "a difference too small to say which edges make it; take texts on which the model "
                        "decides differently"));
}

CircuitEdge circuit_edge(const StreamGraph& graph, const StreamGraph::Edge& edge) {
  const StreamSource& from = graph.sources()[static_cast<size_t>(edge.source)];
  const StreamTarget& to = graph.targets()[static_cast<size_t>(edge.target)];
  const bool end = to.kind == CircuitInput::kStates;
  const int last = static_cast<int>(graph.streams().back().sublayers.size());
  CircuitEdge found{.from = from.name,
                    .to = to.name,
                    .input = to.kind,
                    .from_level = graph.level(from.stream, from.sublayer),
                    .to_level = graph.level(to.owner, end ? last : to.sublayer)};
  if (end) found.readers.push_back(to.name);
  for (int source = 0; source < static_cast<int>(graph.sources().size()); ++source) {
    const std::vector<int>& made_of = graph.made_of(source);
    if (std::find(made_of.begin(), made_of.end(), edge.target) != made_of.end())
      found.readers.push_back(graph.sources()[static_cast<size_t>(source)].name);
  }
  return found;
}

}  // namespace

CircuitReport heads_circuit(const ScoredModel& model,
                            const std::function<std::optional<PatchQuestion>()>& next,
                            const CircuitOptions& options) {
  check_settings(options);
  const CircuitTexts texts(model);
  if (options.sites != nullptr) texts.check(*options.sites);
  const StreamGraph graph(texts.model());
  const HeadMatrices matrices(graph);
  const EdgePasses passes(texts, graph, matrices,
                          {.sites = options.sites, .max_batch_tokens = options.max_batch_tokens});
  EdgeScores scores(
      texts, graph, matrices,
      {.steps = options.steps, .sites = options.sites, .max_batch_tokens = options.max_batch_tokens});
  const ReadPairs read = read_and_score(next, texts, passes, scores, options);
  if (read.count == 0) throw UsageError("no pair of a clean and a corrupt text was given");
  const double difference = read.clean_sum - read.corrupt_sum;
  check_difference(read.clean_sum, read.corrupt_sum, read.count);
  const auto proved = std::ssize(read.first.pairs);
  check_difference(read.first.clean_sum(), read.first.corrupt_sum(), proved);

  CircuitSearch::Edges ranked = graph.edges();
  std::stable_sort(ranked.begin(), ranked.end(), [&](const StreamGraph::Edge& a, const StreamGraph::Edge& b) {
    return std::abs(scores.total(a)) > std::abs(scores.total(b));
  });
  const auto pairs = static_cast<double>(read.count);
  CircuitReport found{.score = texts.score(),
                      .pairs = read.count,
                      .proved_pairs = proved,
                      .clean = read.clean_sum / pairs,
                      .corrupt = read.corrupt_sum / pairs,
                      .edges_of_model = std::ssize(ranked),
                      .share = options.share};
  const auto reported = [&](const StreamGraph::Edge& edge) {
    const double score = scores.total(edge) / difference;
    if (!std::isfinite(score)) throw Error(fmt::format("{}: the score is {}", graph.name(edge), score));
    CircuitEdge one = circuit_edge(graph, edge);
    one.score = score;
    return one;
  };
  const CircuitSearch search(passes, graph, read.first.pairs, read.first.clean, read.first.corrupt, options);
  const auto exact = std::min<int64_t>(options.exact, std::ssize(ranked));
  const CircuitSearch::Edges measured = options.exact_of == ExactEdges::kRandom
                                            ? search.drawn_of(ranked, exact)
                                            : CircuitSearch::Edges(ranked.begin(), ranked.begin() + exact);
  std::vector<CircuitSearch::Edges> singles;
  for (const StreamGraph::Edge& edge : measured) {
    singles.push_back({edge});
    found.exact.push_back(reported(edge));
  }
  const std::vector<Interval> effects = search.effects(singles);
  for (size_t i = 0; i < effects.size(); ++i) found.exact[i].effect = effects[i];
  const CircuitSearch::Found circuit = search.small_set(ranked);
  found.strongest = circuit.strongest;
  found.needed_pairs = circuit.needed_pairs;
  for (const StreamGraph::Edge& edge : circuit.edges) found.edges.push_back(reported(edge));
  found.faithfulness = search.kept(EdgeSet(graph, circuit.edges));
  found.completeness = search.effects({&circuit.edges, 1})[0];
  found.random = search.random(circuit.edges);
  const auto elsewhere = std::ssize(read.next.pairs);
  if (elsewhere > 0 && read.next.clean_sum() - read.next.corrupt_sum() >=
                           kLeastPatchDifference * static_cast<double>(elsewhere)) {
    const CircuitSearch others(passes, graph, read.next.pairs, read.next.clean, read.next.corrupt, options);
    found.faithfulness_elsewhere = others.kept(EdgeSet(graph, circuit.edges));
    found.pairs_elsewhere = elsewhere;
  }
  return found;
}

CircuitReport heads_circuit(const ScoredModel& model, std::span<const PatchQuestion> pairs,
                            const CircuitOptions& options) {
  size_t read = 0;
  return heads_circuit(
      model,
      [&]() -> std::optional<PatchQuestion> {
        return read < pairs.size() ? std::optional(pairs[read++]) : std::nullopt;
      },
      options);
}

}  // namespace mh
