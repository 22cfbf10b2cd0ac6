#include "cli/heads/circuit_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/common.h"
#include "cli/heads/figure_table.h"
#include "multihead/base/terminal_text.h"

namespace mh::cli {
namespace {

std::string with_half(const Interval& interval) {
  return std::isfinite(interval.half) ? fmt::format("{:.3f} ± {:.3f}", interval.mean, interval.half)
                                      : fmt::format("{:.3f}", interval.mean);
}

std::string edges_table(const std::vector<CircuitEdge>& edges, int64_t shown, const char* title) {
  const auto count = std::min<int64_t>(shown, std::ssize(edges));
  std::string text = fmt::format("\n{:<27} {:<36}{:>8}{}\n", title, "to", "score",
                                 count > 0 && edges[0].effect ? "  effect" : "");
  for (int64_t i = 0; i < count; ++i) {
    const CircuitEdge& edge = edges[static_cast<size_t>(i)];
    text += fmt::format("{:<27} {:<36}{:>8.3f}", edge.from, edge.to, edge.score);
    if (edge.effect) text += fmt::format("{:>8.3f}", edge.effect->mean);
    text += "\n";
  }
  if (count < std::ssize(edges)) text += fmt::format("and {} more\n", std::ssize(edges) - count);
  return text;
}

const char* unit_of(PatchScore score) {
  return score == PatchScore::kCosine ? "cosines" : score == PatchScore::kLogit ? "logits" : "log p";
}

}  // namespace

std::string circuit_tables(const CircuitReport& found, int64_t shown) {
  std::string text = wrapped(fmt::format(
      "Over {} the answer is ahead of the wrong one by {:.4f} after clean texts and by {:.4f} after "
      "corrupt ones ({}).",
      counted(found.pairs, "pair"), found.clean, found.corrupt, unit_of(found.score)));
  text +=
      wrapped(fmt::format("The circuit: {} of {} edges; the {} strongest kept {:.0f} %, before edges that "
                          "are not needed were left out.",
                          found.edges.size(), found.edges_of_model, found.strongest, 100 * found.share));
  text += fmt::format("  faithfulness   {:<18}kept by these edges alone, {}\n", with_half(found.faithfulness),
                      counted(found.proved_pairs, "pair"));
  if (found.pairs_elsewhere > 0) {
    text += fmt::format("  elsewhere      {:<18}kept on {}\n", with_half(found.faithfulness_elsewhere),
                        counted(found.pairs_elsewhere, "further pair"));
  }
  text += fmt::format("  completeness   {:<18}lost without these edges\n", with_half(found.completeness));
  text += found.needed_pairs > 0
              ? fmt::format("  each edge is needed: without it less than {:.0f} % is kept, {}\n",
                            100 * found.share, counted(found.needed_pairs, "pair"))
              : std::string("  whether each edge is needed was not shown; --removals allows more runs\n");
  if (const RandomCircuits& random = found.random; random.count > 0) {
    text += fmt::format("  of {} random circuits of as many edges {} {} as faithful, {}:\n", random.count,
                        random.as_faithful, random.as_faithful == 1 ? "is" : "are",
                        counted(random.pairs, "pair"));
    text += fmt::format("  they keep {:.3f} in the mean, {:.3f} at most; the circuit {:.3f}\n", random.mean,
                        random.most, random.circuit);
  }
  text += edges_table(found.edges, shown, "the circuit's edges, from");
  if (!found.exact.empty()) text += edges_table(found.exact, shown, "measured exactly, from");
  return text;
}

}  // namespace mh::cli
