#include "multihead/generate/align.h"

#include <fmt/format.h>

#include <string>

#include "multihead/base/error.h"
#include "multihead/batch/teacher_forced.h"
#include "multihead/nn/sites.h"
#include "multihead/tensor/tensor.h"

namespace mh {
namespace {

/// Reads the weights of the chosen heads of one attention.
class ChosenWeights final : public Sites {
 public:
  /// head: -1: all.
  ChosenWeights(std::string attention, int head) : attention_(std::move(attention)), head_(head) {}

  bool wants(const Site& site) const override {
    return site.part == SitePart::kWeights && site.owner == attention_ && (head_ < 0 || site.head == head_);
  }
  Var at(Tape&, const Site&, const SiteValue& at) override {
    maps.push_back({.weights = copied(at.value.value()),
                    .offsets = {at.rows.offsets.begin(), at.rows.offsets.end()},
                    .keys = {at.keys.begin(), at.keys.end()}});
    return at.value;
  }

  struct Map {
    Tensor weights;  // [Nq, longest keys]
    std::vector<int32_t> offsets, keys;
  };
  std::vector<Map> maps;

 private:
  std::string attention_;
  int head_;
};

/// Of one sequence: for each query the key with the largest sum of weights, unless that is the source's end token.
std::vector<AlignmentPoint> points_of(const std::vector<ChosenWeights::Map>& maps, size_t s,
                                      std::span<const int32_t> source, int32_t end) {
  std::vector<AlignmentPoint> points;
  const int32_t begin = maps[0].offsets[s];
  for (int32_t row = begin; row < maps[0].offsets[s + 1]; ++row) {
    const int32_t keys = maps[0].keys[static_cast<size_t>(row)];
    int32_t best = -1;
    double most = -1;
    for (int32_t j = 0; j < keys; ++j) {
      double sum = 0;
      for (const auto& map : maps) sum += static_cast<double>(map.weights(row, j));
      if (sum > most) best = j, most = sum;
    }
    const bool on_end = best + 1 == keys && source[static_cast<size_t>(best)] == end;
    if (best >= 0 && !on_end) points.push_back({best, row - begin});
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

  ChosenWeights chosen_weights(chosen.name, options.head);
  SitesInTurn sites(context.sites, chosen_weights);
  context.sites = &sites;
  context.tape.clear();
  model.read(context, source, target.input.view());
  context.tape.clear();
  std::vector<std::vector<AlignmentPoint>> found(targets.size());
  for (size_t s = 0; s < targets.size(); ++s) {
    if (targets[s].empty()) continue;  // its one query predicts the end token
    const auto first = static_cast<size_t>(source.ragged->begin(static_cast<int32_t>(s)));
    found[s] = points_of(chosen_weights.maps, s, source.ids.subspan(first), facts.eos_id);
  }
  return found;
}

}  // namespace mh
