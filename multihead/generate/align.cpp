#include "multihead/generate/align.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/batch/teacher_forced.h"
#include "multihead/nn/head_name.h"
#include "multihead/nn/sites.h"

namespace mh {
namespace {

/// The cross-attentions of a model, one a layer of its decoder.
std::vector<Model::Attention> crossings_of(const LanguageModel& model) {
  std::vector<Model::Attention> crossings;
  for (const Model::Attention& attention : model.attentions()) {
    if (attention.place.kind == AttentionKind::kCross) crossings.push_back(attention);
  }
  if (crossings.empty()) throw UsageError("this model has no cross-attention to read an alignment off");
  return crossings;
}

/// The heads that the options name, each by its attention and its number.
std::vector<HeadName> chosen_heads(const LanguageModel& model, const AlignOptions& options) {
  const std::vector<Model::Attention> crossings = crossings_of(model);
  std::vector<HeadName> chosen;
  if (!options.heads.heads.empty()) {
    check_heads(model, options.heads, "alignment heads");
    for (const AligningHead& one : options.heads.heads)
      chosen.push_back({crossings[static_cast<size_t>(one.layer)].name, one.head});
    return chosen;
  }
  const auto layers = static_cast<int32_t>(crossings.size());
  if (options.layer < -1 || options.layer >= layers) {
    throw UsageError(fmt::format("alignment layer: expected 0 to {}, got {}", layers - 1, options.layer));
  }
  const Model::Attention& layer =
      crossings[static_cast<size_t>(options.layer < 0 ? layers - 1 : options.layer)];
  if (options.head < -1 || options.head >= layer.heads) {
    throw UsageError(fmt::format("alignment head: expected 0 to {}, got {}", layer.heads - 1, options.head));
  }
  for (int head = 0; head < layer.heads; ++head) {
    if (options.head < 0 || head == options.head) chosen.push_back({layer.name, head});
  }
  return chosen;
}

/// Adds up the weights of some heads.
class SummedWeights final : public Sites {
 public:
  explicit SummedWeights(std::vector<HeadName> heads) : heads_(std::move(heads)) {}

  bool wants(const Site& site) const override {
    return site.part == SitePart::kWeights &&
           std::any_of(heads_.begin(), heads_.end(), [&](const HeadName& one) {
             return one.attention == site.owner && one.head == site.head;
           });
  }
  Var at(Tape&, const Site&, const SiteValue& value) override {
    const ConstMatrixView weights = value.value.value();
    if (sums_.empty()) {
      sums_.assign(static_cast<size_t>(weights.size()), 0);
      columns_ = weights.cols;
      keys_.assign(value.keys.begin(), value.keys.end());
    }
    for (int64_t i = 0; i < weights.rows; ++i) {
      for (int64_t j = 0; j < columns_; ++j) sums_[static_cast<size_t>(i * columns_ + j)] += weights(i, j);
    }
    return value.value;
  }

  /// The sums of a query, one for each key of its sequence.
  std::span<const double> of_query(int64_t row) const {
    return std::span(sums_).subspan(static_cast<size_t>(row * columns_),
                                    static_cast<size_t>(keys_[static_cast<size_t>(row)]));
  }

 private:
  std::vector<HeadName> heads_;
  std::vector<double> sums_;  // [Nq, longest keys]
  int64_t columns_ = 0;
  std::vector<int32_t> keys_;  // [Nq]: how many of them are keys
};

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
  SummedWeights sums(chosen_heads(model, options));
  if (targets.empty()) return {};

  // Row t predicts token t, and has read the start token and the tokens before t. Of an empty target it is the end token that is
  // predicted. Row t + 1 has just read token t: one row more, where the model has place for it.
  const std::vector<int32_t> end_alone{facts.eos_id};
  const bool reads = options.heads.query == AlignedQuery::kReads && !options.heads.heads.empty();
  TeacherForced target;
  for (size_t s = 0; s < targets.size(); ++s) {
    TeacherForcing how{.start_id = facts.start_id};
    if (reads && std::ssize(targets[s]) < facts.max_positions) how.end_id = facts.eos_id;
    target.add(targets[s].empty() ? end_alone : targets[s], static_cast<int64_t>(s), how);
  }

  SitesInTurn sites(context.sites, sums);
  context.sites = &sites;
  context.tape.clear();
  const Sequences read = target.input.view();
  model.read(context, source, read);
  context.tape.clear();
  std::vector<std::vector<AlignmentPoint>> found(targets.size());
  for (size_t s = 0; s < targets.size(); ++s) {
    const auto number = static_cast<int32_t>(s);
    if (targets[s].empty() || source.ragged->length(number) == 0)
      continue;  // the one query predicts the end token
    const bool ends = source.ids[static_cast<size_t>(source.ragged->end(number) - 1)] == facts.eos_id;
    const int32_t first = reads ? 1 : 0;
    for (int32_t i = 0; i + first < read.ragged->length(number); ++i) {
      // The key with the largest sum, unless that is the source's end token.
      const std::span<const double> of_keys = sums.of_query(read.ragged->begin(number) + first + i);
      const auto best =
          static_cast<int32_t>(std::max_element(of_keys.begin(), of_keys.end()) - of_keys.begin());
      if (!ends || best + 1 < std::ssize(of_keys)) found[s].push_back({best, i});
    }
  }
  return found;
}

void check_heads(const LanguageModel& model, const AligningHeads& heads, std::string_view name) {
  const std::vector<Model::Attention> crossings = crossings_of(model);
  if (heads.heads.empty()) throw UsageError(fmt::format("{}: expected a head or several, got none", name));
  const auto layers = static_cast<int32_t>(crossings.size());
  for (const AligningHead& one : heads.heads) {
    if (one.layer < 0 || one.layer >= layers) {
      throw UsageError(fmt::format("{}: expected layers of the decoder from 0 to {}, got [{}, {}]", name,
                                   layers - 1, one.layer, one.head));
    }
    const int count = crossings[static_cast<size_t>(one.layer)].heads;
    if (one.head < 0 || one.head >= count) {
      throw UsageError(fmt::format("{}: expected heads of layer {} from 0 to {}, got [{}, {}]", name,
                                   one.layer, count - 1, one.layer, one.head));
    }
  }
}

}  // namespace mh
