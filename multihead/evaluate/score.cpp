#include "multihead/evaluate/score.h"

#include <fmt/format.h>

#include "multihead/base/error.h"
#include "multihead/batch/check_ids.h"
#include "multihead/batch/plan_batches.h"
#include "multihead/batch/teacher_forced.h"
#include "multihead/kernels/vocabulary.h"
#include "multihead/nn/list_sites.h"

namespace mh {

std::vector<std::vector<float>> score(const LanguageModel& model,
                                      std::span<const std::vector<int32_t>> sources,
                                      std::span<const std::vector<int32_t>> targets,
                                      const ScoreOptions& options) {
  if (sources.size() != targets.size()) {
    throw UsageError(fmt::format("{} sources but {} targets; they are translations of each other, one by one",
                                 sources.size(), targets.size()));
  }
  const ModelFacts facts = model.facts();
  facts.require_translator();
  if (options.sites) model.check(*options.sites);
  check_ids(sources, {.what = "source",
                      .longest = facts.max_positions,
                      .vocabulary = facts.source_vocabulary,
                      .may_be_empty = false});
  check_ids(targets, {.what = "target",
                      .longest = facts.max_positions - 1,  // the start token comes before
                      .vocabulary = facts.vocabulary});

  std::vector<ExampleSize> sizes;
  sizes.reserve(sources.size());
  std::vector<int64_t> source_rows, target_rows;
  for (size_t i = 0; i < sources.size(); ++i) {
    source_rows.push_back(std::ssize(sources[i]));
    target_rows.push_back(std::ssize(targets[i]) + 1);  // the start token before it
    sizes.push_back({.tokens = source_rows.back() + target_rows.back()});
  }
  const ListOffsets offsets = ListOffsets::of_pairs(source_rows, target_rows);

  std::vector<std::vector<float>> results(sources.size());
  Tape tape;
  ListSites listed(options.sites);
  Context context{.tape = tape, .sites = listed.sites()};
  VocabularyScratch scratch;
  int64_t sentences_done = 0;
  Batch source;
  TeacherForced target;
  const BatchOptions plan{.max_tokens = options.max_batch_tokens,
                          .order = BatchOptions::Order::kLongestFirst};
  for (const auto& batch : plan_batches(sizes, plan)) {
    source.clear();
    target.clear();
    for (const int64_t i : batch) {
      source.add(sources[static_cast<size_t>(i)], i);
      target.add(targets[static_cast<size_t>(i)], i, {.start_id = facts.start_id, .end_id = facts.eos_id});
    }
    listed.begin({.texts = batch, .count = std::ssize(sources), .offsets = &offsets});
    tape.clear();
    const std::vector<float> all =
        model.log_probabilities(context, source.view(), target.input.view(), target.next, scratch);
    for (size_t s = 0; s < batch.size(); ++s) {
      const auto sequence = static_cast<int32_t>(s);
      results[static_cast<size_t>(batch[s])].assign(all.begin() + target.input.ragged.begin(sequence),
                                                    all.begin() + target.input.ragged.end(sequence));
    }
    sentences_done += static_cast<int64_t>(batch.size());
    if (options.progress) options.progress(sentences_done);
  }
  return results;
}

}  // namespace mh
