#include "multihead/models/read_lists.h"

#include <fmt/format.h>

#include "multihead/base/error.h"
#include "multihead/batch/check_ids.h"

namespace mh {

void read_lists(const Model& model, const TokenLists& lists, const Sites* sites, const BatchOptions& plan,
                const std::function<void(const ListBatch&)>& visit) {
  const auto& [sources, targets, types] = lists;
  const ModelFacts facts = model.facts();
  const bool decode = !targets.empty();
  if (decode && targets.size() != sources.size()) {
    throw UsageError(fmt::format("{} sources but {} targets; they are translations of each other, one by one",
                                 sources.size(), targets.size()));
  }
  if (!types.empty() && types.size() != sources.size())
    throw UsageError(fmt::format("token types of {} sources for {}; give them for each, or for none",
                                 types.size(), sources.size()));
  if (sites != nullptr) model.check(*sites);
  check_ids(sources, {.what = "source",
                      .longest = facts.max_positions,
                      .vocabulary = facts.vocabulary_read(),
                      .may_be_empty = false});
  check_ids(targets, {.what = "target",
                      .longest = facts.max_positions - 1,  // the start token comes before
                      .vocabulary = facts.vocabulary});
  std::vector<ExampleSize> sizes;
  std::vector<int64_t> source_rows, target_rows;
  for (size_t i = 0; i < sources.size(); ++i) {
    source_rows.push_back(std::ssize(sources[i]));
    if (decode) target_rows.push_back(std::ssize(targets[i]) + 1);
    sizes.push_back({.tokens = source_rows.back() + (decode ? target_rows.back() : 0)});
  }
  const ListOffsets offsets = ListOffsets::of_pairs(source_rows, decode ? target_rows : source_rows);

  Batch source;
  TeacherForced target;
  for (const auto& batch : plan_batches(sizes, plan)) {
    source.clear();
    target.clear();
    for (const int64_t i : batch) {
      const auto at = static_cast<size_t>(i);
      source.add(sources[at], i, types.empty() ? std::span<const int32_t>() : types[at]);
      if (decode) target.add(targets[at], i, {.start_id = facts.start_id, .end_id = facts.eos_id});
    }
    visit({batch, source, target, offsets});
  }
}

}  // namespace mh
