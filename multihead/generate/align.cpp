#include "multihead/generate/align.h"

#include <fmt/format.h>

#include <string>

#include "multihead/base/error.h"
#include "multihead/batch/teacher_forced.h"
#include "multihead/nn/site_values.h"

namespace mh {
namespace {

/// Of one sequence: for each query the key with the largest sum of the heads' weights [Tq, Tk], unless that is the
/// source's end token.
std::vector<AlignmentPoint> points_of(std::span<const ConstMatrixView> heads, std::span<const int32_t> source,
                                      int32_t end) {
  std::vector<AlignmentPoint> points;
  const int64_t queries = heads[0].rows, keys = heads[0].cols;
  for (int64_t i = 0; i < queries; ++i) {
    int64_t best = -1;
    double most = -1;
    for (int64_t j = 0; j < keys; ++j) {
      double sum = 0;
      for (const ConstMatrixView& weights : heads) sum += static_cast<double>(weights(i, j));
      if (sum > most) best = j, most = sum;
    }
    const bool on_end = best + 1 == keys && source[static_cast<size_t>(best)] == end;
    if (best >= 0 && !on_end) points.push_back({static_cast<int32_t>(best), static_cast<int32_t>(i)});
  }
  return points;
}

}  // namespace

std::vector<std::vector<AlignmentPoint>> align(const LanguageModel& model, Context context,
                                               const Sequences& source,
                                               std::span<const std::vector<int32_t>> targets,
                                               const AlignOptions& options) {
  const ModelFacts facts = model.facts();
  if (targets.size() != static_cast<size_t>(source.ragged->sequences())) {
    throw ShapeError(
        fmt::format("align: {} targets for {} sources", targets.size(), source.ragged->sequences()));
  }
  std::vector<Model::AttentionName> crossings;  // one a layer of the decoder
  for (const Model::AttentionName& attention : model.attentions()) {
    if (attention.name.ends_with(".cross_attention")) crossings.push_back(attention);
  }
  if (crossings.empty()) throw UsageError("this model has no cross-attention to read an alignment off");
  const auto layers = static_cast<int32_t>(crossings.size());
  if (options.layer < -1 || options.layer >= layers) {
    throw UsageError(fmt::format("alignment layer: expected 0 to {}, got {}", layers - 1, options.layer));
  }
  const Model::AttentionName& chosen =
      crossings[static_cast<size_t>(options.layer < 0 ? layers - 1 : options.layer)];
  if (options.head < -1 || options.head >= chosen.heads) {
    throw UsageError(fmt::format("alignment head: expected 0 to {}, got {}", chosen.heads - 1, options.head));
  }
  if (targets.empty()) return {};

  // The query that predicts token t has read the start token and the tokens before t. Of an empty target it
  // is the end token that is predicted.
  const std::vector<int32_t> end_alone{facts.eos_id};
  TeacherForced target;
  for (size_t s = 0; s < targets.size(); ++s) {
    target.add(targets[s].empty() ? end_alone : targets[s], static_cast<int64_t>(s),
               {.start_id = facts.start_id});
  }

  std::vector<std::string> weights;  // the sites of the heads that are read
  for (int head = 0; head < chosen.heads; ++head) {
    if (options.head < 0 || options.head == head)
      weights.push_back(Site{chosen.name, SitePart::kWeights, head}.name());
  }
  SiteValues kept;
  for (const std::string& site : weights) kept.keep(site);
  SitesInTurn sites(context.sites, kept);
  context.sites = &sites;
  context.tape.clear();
  model.read(context, source, target.input.view());
  context.tape.clear();
  std::vector<std::vector<AlignmentPoint>> found(targets.size());
  for (size_t s = 0; s < targets.size(); ++s) {
    if (targets[s].empty()) continue;  // its one query predicts the end token
    const auto number = static_cast<int32_t>(s);
    std::vector<ConstMatrixView> heads;
    for (const std::string& site : weights) heads.push_back(kept.kept(site).sequence(number));
    found[s] =
        points_of(heads, source.ids.subspan(static_cast<size_t>(source.ragged->begin(number))), facts.eos_id);
  }
  return found;
}

}  // namespace mh
