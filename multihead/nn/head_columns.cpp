#include "multihead/nn/head_columns.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/base/random.h"

namespace mh {
namespace {

void check_segment(int size, int d_model) {
  if (size >= 1 && size <= d_model) return;
  throw UsageError(
      fmt::format("a head cannot read {} of {} columns; expected 1 ... {}", size, d_model, d_model));
}

}  // namespace

HeadColumns slice_columns(int heads, int d_model) {
  HeadColumns columns(static_cast<size_t>(heads));
  for (int h = 0; h < heads; ++h) {
    const auto begin = static_cast<int32_t>(int64_t{h} * d_model / heads);
    const auto end = static_cast<int32_t>((int64_t{h} + 1) * d_model / heads);
    for (int32_t c = begin; c < end; ++c) columns[static_cast<size_t>(h)].push_back(c);
  }
  return columns;
}

HeadColumns permuted_slices(int heads, int d_model, uint64_t seed) {
  std::vector<int32_t> order(static_cast<size_t>(d_model));
  std::iota(order.begin(), order.end(), 0);
  Random random(seed);
  random.shuffle(order);
  HeadColumns columns = slice_columns(heads, d_model);
  for (auto& head : columns) {
    for (int32_t& c : head) c = order[static_cast<size_t>(c)];
    std::sort(head.begin(), head.end());
  }
  return columns;
}

HeadColumns random_columns(int heads, int size, int d_model, uint64_t seed) {
  check_segment(size, d_model);
  std::vector<int32_t> order(static_cast<size_t>(d_model));
  std::iota(order.begin(), order.end(), 0);
  Random random(seed);
  HeadColumns columns;
  for (int h = 0; h < heads; ++h) {
    random.shuffle(order);
    columns.emplace_back(order.begin(), order.begin() + size);
    std::sort(columns.back().begin(), columns.back().end());
  }
  return columns;
}

HeadColumns spread_segments(int heads, int size, int d_model) {
  check_segment(size, d_model);
  HeadColumns columns;
  for (int h = 0; h < heads; ++h) {
    const auto begin = static_cast<int32_t>(heads == 1 ? 0 : int64_t{h} * (d_model - size) / (heads - 1));
    std::vector<int32_t> head(static_cast<size_t>(size));
    std::iota(head.begin(), head.end(), begin);
    columns.push_back(std::move(head));
  }
  return columns;
}

}  // namespace mh
