// What a decoder reads when its output is given, and what should follow each row.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "multihead/batch/batch.h"

namespace mh {

struct TeacherForcing {
  int32_t start_id = 0;  // what the decoder reads first
  /// Appended to every target. Without it targets are taken as they are: those of a training have their end
  /// token already, and whoever does not ask for what follows the last token needs none.
  std::optional<int32_t> end_id = std::nullopt;
};

/// Of a target (t_1, ..., t_n), its end token included:
///   input  start  t_1  ...  t_(n-1)
///   next   t_1    t_2  ...  t_n
struct TeacherForced {
  Batch input;
  std::vector<int32_t> next;  // [input.ids.size()]: what follows each row

  /// Throws UsageError on a target of no tokens when no end token is appended.
  void add(std::span<const int32_t> target, int64_t sentence, const TeacherForcing& how);
  /// Keeps the memory for what comes next.
  void clear();
};

/// All targets, numbered from 0.
TeacherForced teacher_forced(std::span<const std::vector<int32_t>> targets, const TeacherForcing& how);

}  // namespace mh
