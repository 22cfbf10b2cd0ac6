#include "multihead/kernels/soft_cap.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "multihead/kernels/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "multihead/kernels/soft_cap.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "multihead/kernels/tanh-inl.h"

HWY_BEFORE_NAMESPACE();
namespace mh::HWY_NAMESPACE {
namespace {

/// Calls run(tag, column) for whole vectors of a row of `columns` numbers, then for single numbers.
template <class Run>
HWY_INLINE void for_vectors(int64_t columns, Run run) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t c = 0;
  for (; c + lanes <= columns; c += lanes) run(d, c);
  for (; c < columns; ++c) run(hn::CappedTag<float, 1>(), c);
}

}  // namespace

void soft_cap_rows(float cap, const ConstMatrixView& x, const MatrixView& y) {
  for (int64_t r = 0; r < x.rows; ++r) {
    const float* from = x.row(r);
    float* to = y.row(r);
    for_vectors(x.cols, [&](auto d, int64_t c) HWY_ATTR {
      const auto factor = hn::Set(d, cap);
      hn::StoreU(tanh_vector(d, hn::Div(hn::LoadU(d, from + c), factor), factor), d, to + c);
    });
  }
}

void soft_cap_gradient_rows(float cap, const ConstMatrixView& y, const ConstMatrixView& dy,
                            const MatrixView& dx) {
  for (int64_t r = 0; r < y.rows; ++r) {
    const float *value = y.row(r), *from = dy.row(r);
    float* to = dx.row(r);
    for_vectors(y.cols, [&](auto d, int64_t c) HWY_ATTR {
      const auto share = hn::Div(hn::LoadU(d, value + c), hn::Set(d, cap));
      hn::StoreU(hn::Mul(hn::LoadU(d, from + c), hn::NegMulAdd(share, share, hn::Set(d, 1.0f))), d, to + c);
    });
  }
}

}  // namespace mh::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mh {
HWY_EXPORT(soft_cap_rows);
HWY_EXPORT(soft_cap_gradient_rows);

bool is_soft_cap(float cap) {
  return std::isfinite(cap) && cap > 0;
}

void soft_cap(float cap, ConstMatrixView x, MatrixView y) {
  HWY_DYNAMIC_DISPATCH(soft_cap_rows)(cap, x, y);
}

void soft_cap_gradient(float cap, ConstMatrixView y, ConstMatrixView dy, MatrixView dx) {
  HWY_DYNAMIC_DISPATCH(soft_cap_gradient_rows)(cap, y, dy, dx);
}

// x = cap atanh(y / cap), in double: near the cap y has little of x left.
void soft_cap_factor(float cap, ConstMatrixView y, ConstMatrixView dy, MatrixView dx) {
  constexpr double kMostShare = 1 - 1e-9;
  for (int64_t r = 0; r < y.rows; ++r) {
    for (int64_t c = 0; c < y.cols; ++c) {
      const double share =
          std::clamp(static_cast<double>(y(r, c)) / static_cast<double>(cap), -kMostShare, kMostShare);
      const double factor = share == 0 || dy(r, c) == 0 ? 1 : share / std::atanh(share);
      dx(r, c) = static_cast<float>(static_cast<double>(dy(r, c)) * factor);
    }
  }
}

}  // namespace mh
#endif
