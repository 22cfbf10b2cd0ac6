// Where the columns of a parameter lie in a tensor that several parameters share.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace mh {

/// Columns [first, first + count) of a parameter, which lie side by side from column `at` of the tensor on.
struct ColumnRun {
  int64_t first = 0, count = 0, at = 0;
};

/// The runs of part `part` of a fused tensor, whose parts have these widths. block: 0 for parts side by side, [q | k | v]; above 0
/// they lie block by block where they are equally wide, [q_1 k_1 v_1 | q_2 k_2 v_2 | ...], each block of so many columns
/// (GPT-NeoX).
inline std::vector<ColumnRun> column_runs(std::span<const int64_t> widths, int part, int64_t block) {
  const auto own = static_cast<size_t>(part);
  const int64_t width = widths[own];
  bool in_blocks = block > 0 && width % block == 0;
  int64_t before = 0;
  for (size_t i = 0; i < widths.size(); ++i) {
    in_blocks = in_blocks && widths[i] == width;
    if (i < own) before += widths[i];
  }
  if (!in_blocks) return {{.first = 0, .count = width, .at = before}};
  std::vector<ColumnRun> runs;
  const auto parts = static_cast<int64_t>(widths.size());
  for (int64_t first = 0; first < width; first += block)
    runs.push_back({.first = first, .count = block, .at = first * parts + block * part});
  return runs;
}

}  // namespace mh
