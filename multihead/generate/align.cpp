#include "multihead/generate/align.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/batch/teacher_forced.h"
#include "multihead/nn/sites.h"

namespace mh {
namespace {

/// Adds up the weights of the heads of one attention.
class SummedWeights final : public Sites {
 public:
  /// head: -1 means all of them.
  SummedWeights(const std::string& attention, int head) : attention_(attention), head_(head) {}

  bool wants(const Site& site) const override {
    return site.part == SitePart::kWeights && site.owner == attention_ && (head_ < 0 || site.head == head_);
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
  const std::string& attention_;
  int head_;
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
  std::vector<Model::Attention> crossings;  // one a layer of the decoder
  for (const Model::Attention& attention : model.attentions()) {
    if (attention.place.kind == AttentionKind::kCross) crossings.push_back(attention);
  }
  if (crossings.empty()) throw UsageError("this model has no cross-attention to read an alignment off");
  const auto layers = static_cast<int32_t>(crossings.size());
  if (options.layer < -1 || options.layer >= layers) {
    throw UsageError(fmt::format("alignment layer: expected 0 to {}, got {}", layers - 1, options.layer));
  }
  const Model::Attention& chosen =
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

  SummedWeights sums(chosen.name, options.head);
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
    for (int32_t i = 0; i < read.ragged->length(number); ++i) {
      // The key with the largest sum, unless that is the source's end token.
      const std::span<const double> of_keys = sums.of_query(read.ragged->begin(number) + i);
      const auto best =
          static_cast<int32_t>(std::max_element(of_keys.begin(), of_keys.end()) - of_keys.begin());
      if (!ends || best + 1 < std::ssize(of_keys)) found[s].push_back({best, i});
    }
  }
  return found;
}

}  // namespace mh
