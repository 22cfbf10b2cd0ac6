// Teacher forcing: a decoder reads the given target, shifted by one token, and should predict the next
// token at each row.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "multihead/batch/batch.h"

namespace mh {

struct TeacherForcing {
  int32_t start_id = 0;  // what the decoder reads first
  /// Appended to every target. Without it targets are taken as they are: training targets have their end
  /// token already, and whoever does not ask what follows the last token needs none.
  std::optional<int32_t> end_id = std::nullopt;
};

/// For a target (t_1, ..., t_n), its end token included:
///   input  start  t_1  ...  t_(n-1)
///   next   t_1    t_2  ...  t_n
struct TeacherForced {
  Batch input;
  std::vector<int32_t> next;  // [input.ids.size()]: the token that follows each row

  /// Adds a target. Throws UsageError when it is empty and no end token is appended.
  void add(std::span<const int32_t> target, int64_t sentence, const TeacherForcing& how);
  /// Empties both and keeps their memory.
  void clear();
};

/// Shifts all targets, numbered from 0.
TeacherForced teacher_forced(std::span<const std::vector<int32_t>> targets, const TeacherForcing& how);

}  // namespace mh
