#include "multihead/kernels/half_rows.h"

#include "multihead/kernels/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "multihead/kernels/half_rows.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace mh::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

void round_rows(const ConstMatrixView& from, const HalfView& to) {
  const hn::ScalableTag<float> d;
  const hn::RebindToUnsigned<decltype(d)> words;
  const hn::Rebind<uint16_t, decltype(d)> halves;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto one = hn::Set(words, 1), below_half = hn::Set(words, 0x7FFF);
  // The nearest bfloat16 in the lower half of each lane.
  const auto rounded = [&](hn::Vec<decltype(d)> x) HWY_ATTR {
    const auto bits = hn::BitCast(words, x), upper = hn::ShiftRight<16>(bits);
    const auto nearest = hn::ShiftRight<16>(hn::Add(bits, hn::Add(below_half, hn::And(upper, one))));
    return hn::IfThenElse(hn::RebindMask(words, hn::IsNaN(x)), hn::Or(upper, hn::Set(words, 0x40)), nearest);
  };
  for (int64_t r = 0; r < from.rows; ++r) {
    const float* const x = from.row(r);
    uint16_t* const y = to.row(r);
    int64_t k = 0;
    for (; k + lanes <= from.cols; k += lanes)
      hn::StoreU(hn::TruncateTo(halves, rounded(hn::LoadU(d, x + k))), halves, y + k);
    for (; k < from.cols; ++k) y[k] = static_cast<uint16_t>(hn::GetLane(rounded(hn::Set(d, x[k]))));
  }
}

}  // namespace mh::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mh {
HWY_EXPORT(round_rows);

void round_to_halves(ConstMatrixView from, HalfView to) {
  MH_ASSERT(from.rows == to.rows && from.cols == to.cols);
  HWY_DYNAMIC_DISPATCH(round_rows)(from, to);
}

HalfRows HalfRows::rows_between(int64_t begin, int64_t end) const {
  MH_ASSERT(0 <= begin && begin <= end && end <= rows);
  return {.rows = end - begin, .depth = depth, .numbers = numbers + begin * depth};
}

int64_t half_rows_bytes(int64_t rows, int64_t k) {
  return rows * even_depth(k) * 2;
}

HalfRows place_half_rows(int64_t rows, int64_t k, std::byte* memory) {
  return {.rows = rows, .depth = even_depth(k), .numbers = reinterpret_cast<uint16_t*>(memory)};
}

void fill_half_rows(ConstMatrixView a, const HalfRows& to, int64_t begin, int64_t end) {
  MH_ASSERT(a.rows == to.rows && even_depth(a.cols) == to.depth);
  const HalfView filled(to.numbers + begin * to.depth, end - begin, a.cols, to.depth);
  round_to_halves(a.rows_between(begin, end), filled);
  for (int64_t r = 0; r < filled.rows && a.cols < to.depth; ++r) filled.row(r)[a.cols] = 0;
}

}  // namespace mh
#endif
