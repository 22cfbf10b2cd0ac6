// exp(x) for a vector, to about 2 ulp: 2^n * 2^f with n the nearest integer and a polynomial for 2^f, |f| <=
// 1/2. Include once for each instruction set, in a kernel's source.

#if defined(MULTIHEAD_KERNELS_EXP_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MULTIHEAD_KERNELS_EXP_INL_H_
#undef MULTIHEAD_KERNELS_EXP_INL_H_
#else
#define MULTIHEAD_KERNELS_EXP_INL_H_
#endif

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace mh::HWY_NAMESPACE {
namespace {  // NOLINT: one copy for each source and target

namespace hn = hwy::HWY_NAMESPACE;

/// 2^f for |f| <= 1/2.
/// The coefficients are the minimax polynomial of degree 5 on [-1/2, 1/2] with value 1 at 0 (relative
/// error 9.2e-8).
template <class D, class V = hn::Vec<D>>
HWY_INLINE V exp2_fraction(D d, V f) {
  V p = hn::Set(d, 1.3264727029e-3f);
  p = hn::MulAdd(p, f, hn::Set(d, 9.6715128782e-3f));
  p = hn::MulAdd(p, f, hn::Set(d, 5.5507337459e-2f));
  p = hn::MulAdd(p, f, hn::Set(d, 2.4022242082e-1f));
  p = hn::MulAdd(p, f, hn::Set(d, 6.9314697760e-1f));
  return hn::MulAdd(p, f, hn::Set(d, 1.0f));
}

/// 2^t. Below 2^-126 it is 0 (so exp2(-infinity) is), above 2^127 infinity; NaN stays NaN.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V exp2_vector(D d, V t) {
  const hn::RebindToSigned<D> di;
  const auto low = hn::Lt(t, hn::Set(d, -126.0f));
  const V clamped = hn::Min(t, hn::Set(d, 128.0f));
  const V n = hn::Round(clamped);
  const V f = hn::Sub(clamped, n);
  V p = exp2_fraction(d, f);
  // Half of n goes into the exponent of each of two factors, so that 2^128 overflows to infinity and not to a
  // NaN.
  const auto whole = hn::ConvertTo(di, n);
  const auto half = hn::ShiftRight<1>(whole);
  const auto rest = hn::Sub(whole, half);
  const auto bias = hn::Set(di, 127);
  p = hn::Mul(p, hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(half, bias))));
  p = hn::Mul(p, hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(rest, bias))));
  return hn::IfThenElse(low, hn::Zero(d), p);
}

/// e^x.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V exp_vector(D d, V x) {
  return exp2_vector(d, hn::Mul(x, hn::Set(d, 1.44269504088896340736f)));
}

}  // namespace
}  // namespace mh::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
