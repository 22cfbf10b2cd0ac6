#include "multihead/analysis/observe_corpus.h"

#include <fmt/format.h>

#include <string_view>

#include "multihead/base/error.h"
#include "multihead/batch/check_ids.h"
#include "multihead/batch/plan_batches.h"
#include "multihead/batch/teacher_forced.h"

namespace mh {
namespace {

/// One observer for the model that stands for all.
class Fan : public Observer {
 public:
  explicit Fan(std::span<CorpusObserver* const> observers) : observers_(observers) {}
  bool wants_weights(std::string_view name) const override {
    for (const CorpusObserver* observer : observers_) {
      if (observer->wants_weights(name)) return true;
    }
    return false;
  }
  void weights(const ObservedWeights& observed) override {
    for (CorpusObserver* observer : observers_) {
      if (observer->wants_weights(observed.name)) observer->weights(observed);
    }
  }
  void rows(std::string_view name, ProjectedTo to, ConstMatrixView rows) override {
    for (CorpusObserver* observer : observers_) {
      if (observer->wants_weights(name)) observer->rows(name, to, rows);
    }
  }

 private:
  std::span<CorpusObserver* const> observers_;
};

}  // namespace

void observe_corpus(const Model& model, std::span<const std::vector<int32_t>> sources,
                    std::span<const std::vector<int32_t>> targets, std::span<CorpusObserver* const> observers,
                    const ObserveOptions& options) {
  const ModelFacts facts = model.facts();
  const bool decode = !targets.empty();
  if (decode && targets.size() != sources.size()) {
    throw UsageError(fmt::format("{} sources but {} targets; they are translations of each other, one by one",
                                 sources.size(), targets.size()));
  }
  const auto& types = options.source_types;
  if (!types.empty() && types.size() != sources.size())
    throw UsageError(fmt::format("token types of {} sources for {}; give them for each, or for none",
                                 types.size(), sources.size()));
  if (options.interventions) model.check(*options.interventions);
  check_ids(sources, {.what = "source",
                      .longest = facts.max_positions,
                      .vocabulary = facts.vocabulary_read(),
                      .may_be_empty = false});
  check_ids(targets, {.what = "target",
                      .longest = facts.max_positions - 1,  // the start token comes before
                      .vocabulary = facts.vocabulary});
  std::vector<ExampleSize> sizes;
  sizes.reserve(sources.size());
  for (size_t i = 0; i < sources.size(); ++i)
    sizes.push_back(
        {.tokens = static_cast<int64_t>(sources[i].size() + (decode ? targets[i].size() + 1 : 0))});

  Fan fan(observers);
  Tape tape;
  Context context{.tape = tape, .observer = &fan, .interventions = options.interventions};
  Batch source;
  TeacherForced target;
  const BatchOptions plan{.max_tokens = options.max_batch_tokens, .order = BatchOptions::Order::kAsGiven};
  for (const auto& batch : plan_batches(sizes, plan)) {
    source.clear();
    target.clear();
    for (const int64_t i : batch) {
      source.add(sources[static_cast<size_t>(i)], i,
                 types.empty() ? std::span<const int32_t>() : types[static_cast<size_t>(i)]);
      if (!decode) continue;
      target.add(targets[static_cast<size_t>(i)], i, {.start_id = facts.start_id, .end_id = facts.eos_id});
    }
    for (CorpusObserver* observer : observers) observer->begin_batch(source.sentences);
    tape.clear();
    model.read(context, source.view(), decode ? target.input.view() : Sequences());
    if (options.progress) options.progress(batch.back() + 1);
  }
}

}  // namespace mh
