#include "multihead/heads/corpus/observe_corpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <string>

#include "multihead/base/error.h"
#include "multihead/batch/check_ids.h"
#include "multihead/batch/plan_batches.h"
#include "multihead/batch/teacher_forced.h"
#include "multihead/nn/list_sites.h"

namespace mh {
namespace {

/// Collects what one attention shows of itself, and gives it to the observers who want it.
class Collector final : public Sites {
 public:
  Collector(const Model& model, std::span<CorpusObserver* const> observers) : observers_(observers) {
    for (Model::Attention& one : model.attentions()) {
      const bool wanted = std::any_of(observers.begin(), observers.end(),
                                      [&](const CorpusObserver* who) { return who->wants_weights(one); });
      if (wanted) wanted_.emplace(one.name, one);
    }
  }

  void begin(std::span<const int64_t> sentences) { sentences_ = sentences; }

  bool wants(const Site& site) const override {
    if (site.part != SitePart::kWeights && site.part != SitePart::kValues && site.part != SitePart::kHeads)
      return false;
    return wanted_.contains(site.owner);
  }

  Var at(Tape&, const Site& site, const SiteValue& at) override {
    if (site.part == SitePart::kValues) {
      values_ = at.value.value();
    } else if (site.part == SitePart::kWeights) {
      matrices_.push_back(at.value.value());
      keys_ = at.keys;
    } else {
      const Model::Attention& attention = wanted_.find(site.owner)->second;
      const BatchWeights batch{.attention = attention,
                               .sentences = sentences_,
                               .query_offsets = at.rows.offsets,
                               .keys = keys_,
                               .matrices = matrices_,
                               .values = values_,
                               .outputs = at.value.value()};
      for (CorpusObserver* observer : observers_) {
        if (observer->wants_weights(attention)) observer->weights(batch);
      }
      matrices_.clear();
    }
    return at.value;
  }

 private:
  std::span<CorpusObserver* const> observers_;
  std::map<std::string, Model::Attention, std::less<>> wanted_;
  std::span<const int64_t> sentences_;
  // Of the attention that runs.
  std::vector<ConstMatrixView> matrices_;
  std::span<const int32_t> keys_;
  ConstMatrixView values_;
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
  if (options.sites != nullptr) model.check(*options.sites);
  check_ids(sources, {.what = "source",
                      .longest = facts.max_positions,
                      .vocabulary = facts.vocabulary_read(),
                      .may_be_empty = false});
  check_ids(targets, {.what = "target",
                      .longest = facts.max_positions - 1,  // the start token comes before
                      .vocabulary = facts.vocabulary});
  std::vector<ExampleSize> sizes;
  sizes.reserve(sources.size());
  std::vector<int64_t> source_rows, target_rows;
  for (size_t i = 0; i < sources.size(); ++i) {
    source_rows.push_back(std::ssize(sources[i]));
    if (decode) target_rows.push_back(std::ssize(targets[i]) + 1);
    sizes.push_back({.tokens = source_rows.back() + (decode ? target_rows.back() : 0)});
  }
  const bool part = !options.numbers.empty();  // of a list
  const ListOffsets offsets = ListOffsets::of_pairs(source_rows, decode ? target_rows : source_rows);

  Collector collector(model, observers);
  ListSites listed(options.sites);
  SitesInTurn sites(listed.sites(), collector);
  Tape tape;
  Context context{.tape = tape, .sites = &sites};
  Batch source;
  TeacherForced target;
  std::vector<int64_t> numbers;
  const BatchOptions plan{.max_tokens = options.max_batch_tokens, .order = BatchOptions::Order::kAsGiven};
  for (const auto& batch : plan_batches(sizes, plan)) {
    source.clear();
    target.clear();
    numbers.clear();
    for (const int64_t i : batch) {
      source.add(sources[static_cast<size_t>(i)], i,
                 types.empty() ? std::span<const int32_t>() : types[static_cast<size_t>(i)]);
      if (!decode) continue;
      target.add(targets[static_cast<size_t>(i)], i, {.start_id = facts.start_id, .end_id = facts.eos_id});
    }
    for (const int64_t i : batch) numbers.push_back(part ? options.numbers[static_cast<size_t>(i)] : i);
    listed.begin(part ? ListedBatch{.texts = numbers}
                      : ListedBatch{.texts = numbers, .count = std::ssize(sources), .offsets = &offsets});
    collector.begin(source.sentences);
    tape.clear();
    model.read(context, source.view(), decode ? target.input.view() : Sequences());
    if (options.progress) options.progress(batch.back() + 1);
  }
}

}  // namespace mh
