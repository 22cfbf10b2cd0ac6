#include "multihead/batch/teacher_forced.h"

#include <fmt/format.h>

#include "multihead/base/error.h"

namespace mh {

void TeacherForced::add(std::span<const int32_t> target, int64_t sentence, const TeacherForcing& how) {
  if (target.empty() && !how.end_id) {
    throw UsageError(fmt::format("target {}: no tokens, not even the end token", sentence));
  }
  const size_t before = next.size();
  next.insert(next.end(), target.begin(), target.end());
  if (how.end_id) next.push_back(*how.end_id);
  input.ids.push_back(how.start_id);
  input.ids.insert(input.ids.end(), next.begin() + static_cast<std::ptrdiff_t>(before), next.end() - 1);
  input.ragged.add(static_cast<int32_t>(next.size() - before));
  input.sentences.push_back(sentence);
}

void TeacherForced::clear() {
  input.clear();
  next.clear();
}

TeacherForced teacher_forced(std::span<const std::vector<int32_t>> targets, const TeacherForcing& how) {
  TeacherForced forced;
  for (size_t s = 0; s < targets.size(); ++s) forced.add(targets[s], static_cast<int64_t>(s), how);
  return forced;
}

}  // namespace mh
