#include "multihead/kernels/elementwise.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>

#include "multihead/base/thread_pool.h"
#include "multihead/kernels/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "multihead/kernels/elementwise.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "multihead/kernels/exp-inl.h"

HWY_BEFORE_NAMESPACE();
namespace mh::HWY_NAMESPACE {
namespace {

// Calls body(pointer offset, count): whole vectors, then what is left.
template <class Vectors, class Rest>
HWY_INLINE void for_vectors(int64_t n, int64_t lanes, Vectors vectors, Rest rest) {
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) vectors(i);
  if (i < n) rest(i, static_cast<size_t>(n - i));
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V sigmoid(D d, V x) {
  return hn::Div(hn::Set(d, 1.0f), hn::Add(hn::Set(d, 1.0f), exp_vector(d, hn::Neg(x))));
}

}  // namespace

void add_bias_rows(const float* bias, const MatrixView& y) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t r = 0; r < y.rows; ++r) {
    float* row = y.row(r);
    int64_t c = 0;
    for (; c + lanes <= y.cols; c += lanes)
      hn::StoreU(hn::Add(hn::LoadU(d, row + c), hn::LoadU(d, bias + c)), d, row + c);
    for (; c < y.cols; ++c) row[c] += bias[c];
  }
}

void relu_rows(const ConstMatrixView& z, const MatrixView& y) {
  for (int64_t r = 0; r < z.rows; ++r) {
    const float* from = z.row(r);
    float* to = y.row(r);
    for (int64_t c = 0; c < z.cols; ++c) to[c] = from[c] < 0 ? 0 : from[c];  // NaN stays NaN
  }
}

void relu_gradient_rows(const ConstMatrixView& z, const ConstMatrixView& dy, const MatrixView& dz) {
  for (int64_t r = 0; r < z.rows; ++r) {
    const float *zr = z.row(r), *from = dy.row(r);
    float* to = dz.row(r);
    for (int64_t c = 0; c < z.cols; ++c) to[c] = zr[c] > 0 ? from[c] : 0;
  }
}

void swish_rows(const ConstMatrixView& z, const MatrixView& y) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t r = 0; r < z.rows; ++r) {
    const float* from = z.row(r);
    float* to = y.row(r);
    int64_t c = 0;
    for (; c + lanes <= z.cols; c += lanes) {
      const auto x = hn::LoadU(d, from + c);
      hn::StoreU(hn::Mul(x, sigmoid(d, x)), d, to + c);
    }
    for (; c < z.cols; ++c) to[c] = from[c] / (1 + std::exp(-from[c]));
  }
}

// d/dz z s(z) = s (1 + z (1 - s)),  s = 1 / (1 + e^-z)
void swish_gradient_rows(const ConstMatrixView& z, const ConstMatrixView& dy, const MatrixView& dz) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto one = hn::Set(d, 1.0f);
  for (int64_t r = 0; r < z.rows; ++r) {
    const float *zr = z.row(r), *from = dy.row(r);
    float* to = dz.row(r);
    int64_t c = 0;
    for (; c + lanes <= z.cols; c += lanes) {
      const auto x = hn::LoadU(d, zr + c);
      const auto s = sigmoid(d, x);
      const auto slope = hn::Mul(s, hn::MulAdd(x, hn::Sub(one, s), one));
      hn::StoreU(hn::Mul(hn::LoadU(d, from + c), slope), d, to + c);
    }
    for (; c < z.cols; ++c) {
      const float s = 1 / (1 + std::exp(-zr[c]));
      to[c] = from[c] * s * (1 + zr[c] * (1 - s));
    }
  }
}

// (1 + tanh u) / 2 = 1 / (1 + e^-2u), so that x (1 + tanh u) / 2 = x s(2u) with
// 2u = 2 sqrt(2 / pi) (x + 0.044715 x^3).
constexpr float kTwoRootTwoByPi = 1.5957691216057308f, kCube = 0.044715f;

void gelu_tanh_rows(const ConstMatrixView& z, const MatrixView& y) {
  const hn::ScalableTag<float> d;
  const hn::CappedTag<float, 1> one_lane;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t r = 0; r < z.rows; ++r) {
    const float* from = z.row(r);
    float* to = y.row(r);
    const auto run = [&](auto tag, int64_t c) HWY_ATTR {
      const auto x = hn::LoadU(tag, from + c);
      const auto cubic = hn::MulAdd(hn::Mul(hn::Set(tag, kCube), x), hn::Mul(x, x), x);
      hn::StoreU(hn::Mul(x, sigmoid(tag, hn::Mul(hn::Set(tag, kTwoRootTwoByPi), cubic))), tag, to + c);
    };
    int64_t c = 0;
    for (; c + lanes <= z.cols; c += lanes) run(d, c);
    for (; c < z.cols; ++c) run(one_lane, c);
  }
}

// d/dx x s(v) = s + x s (1 - s) v',  v' = 2 sqrt(2 / pi) (1 + 3 * 0.044715 x^2)
void gelu_tanh_gradient_rows(const ConstMatrixView& z, const ConstMatrixView& dy, const MatrixView& dz) {
  const hn::ScalableTag<float> d;
  const hn::CappedTag<float, 1> one_lane;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t r = 0; r < z.rows; ++r) {
    const float *zr = z.row(r), *from = dy.row(r);
    float* to = dz.row(r);
    const auto run = [&](auto tag, int64_t c) HWY_ATTR {
      const auto one = hn::Set(tag, 1.0f), factor = hn::Set(tag, kTwoRootTwoByPi);
      const auto x = hn::LoadU(tag, zr + c), squared = hn::Mul(x, x);
      const auto cubic = hn::MulAdd(hn::Mul(hn::Set(tag, kCube), x), squared, x);
      const auto s = sigmoid(tag, hn::Mul(factor, cubic));
      const auto v = hn::Mul(factor, hn::MulAdd(hn::Set(tag, 3 * kCube), squared, one));
      const auto slope = hn::MulAdd(hn::Mul(x, hn::Mul(s, hn::Sub(one, s))), v, s);
      hn::StoreU(hn::Mul(hn::LoadU(tag, from + c), slope), tag, to + c);
    };
    int64_t c = 0;
    for (; c + lanes <= z.cols; c += lanes) run(d, c);
    for (; c < z.cols; ++c) run(one_lane, c);
  }
}

void multiply_rows_by(const ConstMatrixView& x, const MatrixView& y) {
  for (int64_t r = 0; r < x.rows; ++r) {
    const float* from = x.row(r);
    float* to = y.row(r);
    for (int64_t c = 0; c < x.cols; ++c) to[c] *= from[c];
  }
}

void copy_or_add_rows(const ConstMatrixView& x, const MatrixView& y, bool add) {
  for (int64_t r = 0; r < x.rows; ++r) {
    const float* from = x.row(r);
    float* to = y.row(r);
    if (add) {
      for (int64_t c = 0; c < x.cols; ++c) to[c] += from[c];
    } else {
      std::memcpy(to, from, static_cast<size_t>(x.cols) * sizeof(float));
    }
  }
}

// Sums of columns [c, c + width) over all rows; rows in blocks of 512 so that rounding grows with the blocks
// only.
void sum_columns(const ConstMatrixView& x, int64_t c, int64_t width, float* sums, bool add) {
  constexpr int64_t kBlock = 512;
  float total[64] = {};
  for (int64_t r0 = 0; r0 < x.rows; r0 += kBlock) {
    float block[64] = {};
    for (int64_t r = r0; r < std::min(x.rows, r0 + kBlock); ++r) {
      const float* row = x.row(r) + c;
      if (width == 64) {
        for (int64_t j = 0; j < 64; ++j) block[j] += row[j];
      } else {
        for (int64_t j = 0; j < width; ++j) block[j] += row[j];
      }
    }
    for (int64_t j = 0; j < width; ++j) total[j] += block[j];
  }
  for (int64_t j = 0; j < width; ++j) sums[c + j] = add ? sums[c + j] + total[j] : total[j];
}

}  // namespace mh::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mh {
HWY_EXPORT(add_bias_rows);
HWY_EXPORT(relu_rows);
HWY_EXPORT(relu_gradient_rows);
HWY_EXPORT(swish_rows);
HWY_EXPORT(swish_gradient_rows);
HWY_EXPORT(gelu_tanh_rows);
HWY_EXPORT(gelu_tanh_gradient_rows);
HWY_EXPORT(multiply_rows_by);
HWY_EXPORT(copy_or_add_rows);
HWY_EXPORT(sum_columns);

namespace {

float gelu(float x) {
  return 0.5f * x * (1 + std::erf(x * static_cast<float>(std::numbers::sqrt2 / 2)));
}

// Phi(x) + x phi(x)
float gelu_slope(float x) {
  const float cdf = 0.5f * (1 + std::erf(x * static_cast<float>(std::numbers::sqrt2 / 2)));
  constexpr auto kDensityAtZero = static_cast<float>(std::numbers::inv_sqrtpi / std::numbers::sqrt2);
  return cdf + x * kDensityAtZero * std::exp(-0.5f * x * x);
}

void check_alike(ConstMatrixView a, ConstMatrixView b) {
  MH_ASSERT(a.rows == b.rows && a.cols == b.cols);
}

}  // namespace

void add_bias(ConstMatrixView bias, MatrixView y) {
  if (bias.empty()) return;
  MH_ASSERT(bias.rows == 1 && bias.cols == y.cols);
  HWY_DYNAMIC_DISPATCH(add_bias_rows)(bias.data, y);
}

void activate(Activation activation, ConstMatrixView z, MatrixView y) {
  check_alike(z, y);
  switch (activation) {
    case Activation::kNone:
      return z.data == y.data ? void() : copy_or_add(z, y, Write::kOverwrite);
    case Activation::kRelu:
      return HWY_DYNAMIC_DISPATCH(relu_rows)(z, y);
    case Activation::kSwish:
      return HWY_DYNAMIC_DISPATCH(swish_rows)(z, y);
    case Activation::kGeluTanh:
      return HWY_DYNAMIC_DISPATCH(gelu_tanh_rows)(z, y);
    case Activation::kGelu:
      for (int64_t r = 0; r < z.rows; ++r) {
        for (int64_t c = 0; c < z.cols; ++c) y(r, c) = gelu(z(r, c));
      }
  }
}

void activation_gradient(Activation activation, ConstMatrixView z, ConstMatrixView dy, MatrixView dz) {
  check_alike(dy, dz);
  switch (activation) {
    case Activation::kNone:
      return dy.data == dz.data ? void() : copy_or_add(dy, dz, Write::kOverwrite);
    case Activation::kRelu:
      return HWY_DYNAMIC_DISPATCH(relu_gradient_rows)(z, dy, dz);
    case Activation::kSwish:
      return HWY_DYNAMIC_DISPATCH(swish_gradient_rows)(z, dy, dz);
    case Activation::kGeluTanh:
      return HWY_DYNAMIC_DISPATCH(gelu_tanh_gradient_rows)(z, dy, dz);
    case Activation::kGelu:
      for (int64_t r = 0; r < z.rows; ++r) {
        for (int64_t c = 0; c < z.cols; ++c) dz(r, c) = dy(r, c) * gelu_slope(z(r, c));
      }
  }
}

void multiply_elements(ConstMatrixView x, MatrixView y) {
  check_alike(x, y);
  HWY_DYNAMIC_DISPATCH(multiply_rows_by)(x, y);
}

void copy_or_add(ConstMatrixView x, MatrixView y, Write write) {
  check_alike(x, y);
  HWY_DYNAMIC_DISPATCH(copy_or_add_rows)(x, y, write == Write::kAdd);
}

void column_sums(ConstMatrixView x, MatrixView sums, Write write) {
  MH_ASSERT(sums.rows == 1 && sums.cols == x.cols);
  constexpr int64_t kColumns = 64;  // of a task
  parallel_for((x.cols + kColumns - 1) / kColumns, [&](int64_t task) {
    const int64_t c = task * kColumns;
    HWY_DYNAMIC_DISPATCH(sum_columns)(x, c, std::min(kColumns, x.cols - c), sums.data, write == Write::kAdd);
  });
}

}  // namespace mh
#endif
