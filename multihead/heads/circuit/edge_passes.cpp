#include "multihead/heads/circuit/edge_passes.h"

#include <algorithm>

#include "multihead/base/finite.h"
#include "multihead/heads/circuit/edge_sites.h"

namespace mh {
namespace {

std::vector<double> in_double(ConstMatrixView scores) {
  std::vector<double> found;
  for (int64_t i = 0; i < scores.rows; ++i) found.push_back(scores(i, 0));
  return found;
}

}  // namespace

EdgePasses::EdgePasses(const CircuitTexts& texts, const StreamGraph& graph, const HeadMatrices& matrices,
                       const Options& options)
    : texts_(texts), graph_(graph), matrices_(matrices), options_(options) {}

std::vector<double> EdgePasses::plain_scores(std::span<const CircuitPair> pairs, bool corrupt) const {
  std::vector<double> all;
  in_batches(
      pairs.size(), options_.max_batch_tokens, [&](size_t i) { return pairs[i].tokens(); },
      [&](size_t begin, size_t end) {
        std::vector<CircuitTexts::Text> batch;
        for (size_t i = begin; i < end; ++i) batch.push_back({&pairs[i], corrupt});
        const CircuitTexts::Batches batches = CircuitTexts::batches(batch);
        Tape tape;
        SiteValues nothing;
        CallersSites together(options_.sites, nothing, batch.size());
        Context context{.tape = tape, .sites = together.sites()};
        const Var scores = texts_.scores(context, batch, batches);
        require_finite(scores.value(), "the score of a text", context.blame());
        const std::vector<double> some = in_double(scores.value());
        all.insert(all.end(), some.begin(), some.end());
      });
  return all;
}

std::vector<double> EdgePasses::scores(std::span<const Run> runs) const {
  std::vector<double> all;
  in_batches(
      runs.size(), options_.max_batch_tokens, [&](size_t i) { return runs[i].pair->tokens(); },
      [&](size_t begin, size_t end) {
        const std::vector<double> some = batch_scores(runs.subspan(begin, end - begin));
        all.insert(all.end(), some.begin(), some.end());
      });
  return all;
}

std::vector<double> EdgePasses::batch_scores(std::span<const Run> runs) const {
  std::vector<CircuitTexts::Text> clean, corrupt;
  std::vector<int> pair_of;
  for (const Run& run : runs) {
    clean.push_back({run.pair, false});
    const auto found = std::find_if(corrupt.begin(), corrupt.end(),
                                    [&](const CircuitTexts::Text& text) { return text.pair == run.pair; });
    pair_of.push_back(static_cast<int>(found - corrupt.begin()));
    if (found == corrupt.end()) corrupt.push_back({run.pair, true});
  }
  Tape tape;
  SiteValues corrupt_values;
  keep_streams(graph_, options_.step_by_step, corrupt_values);
  {
    const CircuitTexts::Batches batches = CircuitTexts::batches(corrupt);
    CallersSites together(options_.sites, corrupt_values, corrupt.size());
    Context context{.tape = tape, .sites = together.sites()};
    texts_.scores(context, corrupt, batches);
    tape.clear();
  }
  EdgeSites sites({.graph = graph_,
                   .matrices = matrices_,
                   .corrupt = corrupt_values,
                   .pair_of = pair_of,
                   .runs = runs,
                   .step_by_step = options_.step_by_step});
  const CircuitTexts::Batches batches = CircuitTexts::batches(clean);
  CallersSites together(options_.sites, sites, clean.size());
  Context context{.tape = tape, .sites = together.sites()};
  const Var scores = texts_.scores(context, clean, batches);
  require_finite(scores.value(), "the score of a run of some edges", context.blame());
  return in_double(scores.value());
}

}  // namespace mh
