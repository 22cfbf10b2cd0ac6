#include "multihead/generate/align.h"

#include <fmt/format.h>

#include <string>

#include "multihead/base/error.h"
#include "multihead/batch/teacher_forced.h"

namespace mh {
namespace {

class AlignmentObserver : public Observer {
 public:
  AlignmentObserver(std::string name, const AlignOptions& options, const Sequences& source, int32_t end)
      : name_(std::move(name)), options_(options), source_(source), end_(end) {}

  bool wants_weights(std::string_view name) const override { return name == name_; }

  void weights(const ObservedWeights& observed) override {
    const float* block = observed.weights;  // of one sequence: [heads, Tq, Tk]
    const int first = options_.head < 0 ? 0 : options_.head;
    const int last = options_.head < 0 ? observed.heads : options_.head + 1;
    for (size_t s = 0; s + 1 < observed.query_offsets.size(); ++s) {
      const int64_t queries = observed.query_offsets[s + 1] - observed.query_offsets[s];
      const int64_t keys = observed.key_offsets[s + 1] - observed.key_offsets[s];
      const int32_t* source = source_.ids.data() + observed.key_offsets[s];
      auto& points = alignments.emplace_back();
      for (int64_t i = 0; i < queries; ++i) {
        int64_t best = -1;
        double most = -1;
        for (int64_t j = 0; j < keys; ++j) {
          double sum = 0;
          for (int h = first; h < last; ++h) sum += static_cast<double>(block[(h * queries + i) * keys + j]);
          if (sum > most) best = j, most = sum;
        }
        const bool on_end = best + 1 == keys && source[best] == end_;
        if (best >= 0 && !on_end) points.push_back({static_cast<int32_t>(best), static_cast<int32_t>(i)});
      }
      block += observed.heads * queries * keys;
    }
  }

  std::vector<std::vector<AlignmentPoint>> alignments;

 private:
  std::string name_;
  const AlignOptions& options_;
  const Sequences& source_;
  const int32_t end_;
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

  AlignmentObserver observer(chosen.name, options, source, facts.eos_id);
  context.observer = &observer;
  context.tape.clear();
  model.read(context, source, target.input.view());
  context.tape.clear();
  MH_ASSERT(observer.alignments.size() == targets.size());
  for (size_t s = 0; s < targets.size(); ++s) {
    if (targets[s].empty()) observer.alignments[s].clear();  // its one query predicts the end token
  }
  return std::move(observer.alignments);
}

}  // namespace mh
