#include "multihead/kernels/norm.h"

#include <cmath>
#include <limits>

#include "multihead/kernels/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "multihead/kernels/norm.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace mh::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

namespace {

// Sum of term(c) over columns: whole vectors first, then the rest a number at a time through the same term.
template <class VectorTerm, class Term>
HWY_INLINE float sum_over(int64_t cols, VectorTerm vector_term, Term term) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  auto sum = hn::Zero(d);
  int64_t c = 0;
  for (; c + lanes <= cols; c += lanes) sum = vector_term(c, sum);
  float total = hn::GetLane(hn::SumOfLanes(d, sum));
  for (; c < cols; ++c) total += term(c);
  return total;
}

}  // namespace

// With kRms the mean counts as 0.
template <NormKind kKind, bool kBias>
void norm_rows(const ConstMatrixView& x, const float* gain, const float* bias, float epsilon,
               const MatrixView& y, float* means, float* inverse_deviations) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const float scale = 1.0f / static_cast<float>(x.cols);
  for (int64_t r = 0; r < x.rows; ++r) {
    const float* from = x.row(r);
    float* to = y.row(r);
    float mean = 0;
    if constexpr (kKind == NormKind::kLayer) {
      mean = scale * sum_over(
                         x.cols,
                         [&](int64_t c, auto sum) HWY_ATTR { return hn::Add(sum, hn::LoadU(d, from + c)); },
                         [&](int64_t c) { return from[c]; });
    }
    const auto mean_vector = hn::Set(d, mean);
    const float variance = scale * sum_over(
                                       x.cols,
                                       [&](int64_t c, auto sum) HWY_ATTR {
                                         const auto centred = hn::Sub(hn::LoadU(d, from + c), mean_vector);
                                         return hn::MulAdd(centred, centred, sum);
                                       },
                                       [&](int64_t c) { return (from[c] - mean) * (from[c] - mean); });
    // Where squares are too large for float32, no number: else every such row would become 0, and nobody would know.
    const float inverse =
        std::isinf(variance) ? std::numeric_limits<float>::quiet_NaN() : 1.0f / std::sqrt(variance + epsilon);
    const auto inverse_vector = hn::Set(d, inverse);
    int64_t c = 0;
    for (; c + lanes <= x.cols; c += lanes) {
      const auto n = hn::Mul(hn::Sub(hn::LoadU(d, from + c), mean_vector), inverse_vector);
      if constexpr (kBias) {
        hn::StoreU(hn::MulAdd(n, hn::LoadU(d, gain + c), hn::LoadU(d, bias + c)), d, to + c);
      } else {
        hn::StoreU(hn::Mul(n, hn::LoadU(d, gain + c)), d, to + c);
      }
    }
    for (; c < x.cols; ++c) {
      to[c] = (from[c] - mean) * inverse * gain[c];
      if constexpr (kBias) to[c] += bias[c];
    }
    if (means != nullptr) {
      means[r] = mean;
      inverse_deviations[r] = inverse;
    }
  }
}

template <NormKind kKind>
void norm_gradient_rows(const ConstMatrixView& x, const float* gain, bool held, const float* means,
                        const float* inverse_deviations, const ConstMatrixView& dy, const MatrixView& dx,
                        float* dgain, float* dbias) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const float scale = 1.0f / static_cast<float>(x.cols);
  for (int64_t r = 0; r < x.rows; ++r) {
    const float *xr = x.row(r), *dyr = dy.row(r);
    float* dxr = dx.row(r);
    const float mean = means[r], inverse = inverse_deviations[r];
    const auto mean_vector = hn::Set(d, mean), inverse_vector = hn::Set(d, inverse);
    auto g_sum = hn::Zero(d), gn_sum = hn::Zero(d);
    float g_total = 0, gn_total = 0;
    int64_t c = 0;
    for (; c + lanes <= x.cols; c += lanes) {
      const auto dyv = hn::LoadU(d, dyr + c);
      const auto n = hn::Mul(hn::Sub(hn::LoadU(d, xr + c), mean_vector), inverse_vector);
      const auto dy_n = hn::Mul(dyv, n);
      const auto gain_vector = hn::LoadU(d, gain + c);
      g_sum = hn::MulAdd(gain_vector, dyv, g_sum);
      gn_sum = hn::MulAdd(gain_vector, dy_n, gn_sum);
      hn::StoreU(hn::Add(hn::LoadU(d, dgain + c), dy_n), d, dgain + c);
      if constexpr (kKind == NormKind::kLayer)
        hn::StoreU(hn::Add(hn::LoadU(d, dbias + c), dyv), d, dbias + c);
    }
    for (; c < x.cols; ++c) {
      const float n = (xr[c] - mean) * inverse;
      g_total += gain[c] * dyr[c];
      gn_total += gain[c] * dyr[c] * n;
      dgain[c] += dyr[c] * n;
      if constexpr (kKind == NormKind::kLayer) dbias[c] += dyr[c];
    }
    // The mean moves with x, so the average of g is taken off; an RMS norm has none.
    g_total = kKind == NormKind::kLayer ? scale * (g_total + hn::GetLane(hn::SumOfLanes(d, g_sum))) : 0;
    gn_total = held ? 0 : scale * (gn_total + hn::GetLane(hn::SumOfLanes(d, gn_sum)));
    const auto g_average = hn::Set(d, g_total), gn_average = hn::Set(d, gn_total);
    c = 0;
    for (; c + lanes <= x.cols; c += lanes) {
      const auto n = hn::Mul(hn::Sub(hn::LoadU(d, xr + c), mean_vector), inverse_vector);
      const auto g = hn::Mul(hn::LoadU(d, gain + c), hn::LoadU(d, dyr + c));
      hn::StoreU(hn::Mul(inverse_vector, hn::Sub(hn::Sub(g, g_average), hn::Mul(n, gn_average))), d, dxr + c);
    }
    for (; c < x.cols; ++c) {
      const float n = (xr[c] - mean) * inverse;
      dxr[c] = inverse * (gain[c] * dyr[c] - g_total - n * gn_total);
    }
  }
}

void layer_norm_rows(const ConstMatrixView& x, const float* gain, const float* bias, float epsilon,
                     const MatrixView& y, float* means, float* inverse_deviations) {
  if (bias != nullptr) {
    norm_rows<NormKind::kLayer, true>(x, gain, bias, epsilon, y, means, inverse_deviations);
  } else {
    norm_rows<NormKind::kLayer, false>(x, gain, bias, epsilon, y, means, inverse_deviations);
  }
}
void rms_norm_rows(const ConstMatrixView& x, const float* gain, const float* bias, float epsilon,
                   const MatrixView& y, float* means, float* inverse_deviations) {
  norm_rows<NormKind::kRms, false>(x, gain, bias, epsilon, y, means, inverse_deviations);
}
void layer_norm_gradient_rows(const ConstMatrixView& x, const float* gain, bool held, const float* means,
                              const float* inverse_deviations, const ConstMatrixView& dy,
                              const MatrixView& dx, float* dgain, float* dbias) {
  norm_gradient_rows<NormKind::kLayer>(x, gain, held, means, inverse_deviations, dy, dx, dgain, dbias);
}
void rms_norm_gradient_rows(const ConstMatrixView& x, const float* gain, bool held, const float* means,
                            const float* inverse_deviations, const ConstMatrixView& dy, const MatrixView& dx,
                            float* dgain, float* dbias) {
  norm_gradient_rows<NormKind::kRms>(x, gain, held, means, inverse_deviations, dy, dx, dgain, dbias);
}

}  // namespace mh::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mh {
HWY_EXPORT(layer_norm_rows);
HWY_EXPORT(rms_norm_rows);
HWY_EXPORT(layer_norm_gradient_rows);
HWY_EXPORT(rms_norm_gradient_rows);

void normalise(const Norm& norm, ConstMatrixView x, MatrixView y, float* mean, float* inverse_deviation) {
  MH_ASSERT(norm.gain.cols == x.cols && y.rows == x.rows && y.cols == x.cols);
  if (norm.kind == NormKind::kLayer) {
    MH_ASSERT(norm.bias.data == nullptr || norm.bias.cols == x.cols);
    HWY_DYNAMIC_DISPATCH(layer_norm_rows)
    (x, norm.gain.data, norm.bias.data, norm.epsilon, y, mean, inverse_deviation);
  } else {
    HWY_DYNAMIC_DISPATCH(rms_norm_rows)(x, norm.gain.data, nullptr, norm.epsilon, y, mean, inverse_deviation);
  }
}

void normalise_gradient(const Norm& norm, ConstMatrixView x, const float* mean,
                        const float* inverse_deviation, ConstMatrixView dy, MatrixView dx, float* dgain_block,
                        float* dbias_block) {
  MH_ASSERT(norm.gain.cols == x.cols && dy.rows == x.rows && dx.rows == x.rows && dy.cols == x.cols &&
            dx.cols == x.cols);
  if (norm.kind == NormKind::kLayer) {
    HWY_DYNAMIC_DISPATCH(layer_norm_gradient_rows)
    (x, norm.gain.data, norm.held, mean, inverse_deviation, dy, dx, dgain_block, dbias_block);
  } else {
    HWY_DYNAMIC_DISPATCH(rms_norm_gradient_rows)
    (x, norm.gain.data, norm.held, mean, inverse_deviation, dy, dx, dgain_block, dbias_block);
  }
}

}  // namespace mh
#endif
