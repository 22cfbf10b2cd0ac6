// tanh(x) for a vector, to about 1e-7 of its value. Include once for each instruction set, in a kernel's source.

#if defined(MULTIHEAD_KERNELS_TANH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MULTIHEAD_KERNELS_TANH_INL_H_
#undef MULTIHEAD_KERNELS_TANH_INL_H_
#else
#define MULTIHEAD_KERNELS_TANH_INL_H_
#endif

#include <hwy/highway.h>

#include "multihead/kernels/exp-inl.h"

HWY_BEFORE_NAMESPACE();
namespace mh::HWY_NAMESPACE {
namespace {  // NOLINT: one copy for each source and target

constexpr float kTanhSmall = 0.625f;  // up to here the polynomial, beyond it the exponential

/// (tanh(x) / x - 1) / x^2 by x^2, for |x| <= kTanhSmall: the minimax polynomial of degree 4 (relative error
/// of tanh 4.4e-9).
template <class D, class V = hn::Vec<D>>
HWY_INLINE V tanh_polynomial(D d, V square) {
  V p = hn::Set(d, -0x1.75e1ccp-8f);
  p = hn::MulAdd(p, square, hn::Set(d, 0x1.52269cp-6f));
  p = hn::MulAdd(p, square, hn::Set(d, -0x1.b83c5ap-5f));
  p = hn::MulAdd(p, square, hn::Set(d, 0x1.110726p-3f));
  return hn::MulAdd(p, square, hn::Set(d, -0x1.555532p-2f));
}

/// factor * tanh(x) for |x| <= kTanhSmall; NaN for NaN.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V tanh_small(D d, V x, V factor) {
  const V square = hn::Mul(x, x), first = hn::Mul(x, factor);
  return hn::MulAdd(hn::Mul(first, square), tanh_polynomial(d, square), first);
}

/// factor * tanh(x) of any x: 1 - 2 / (e^2|x| + 1) would lose the digits of a small x.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V tanh_vector(D d, V x, V factor) {
  const V size = hn::Abs(x), one = hn::Set(d, 1.0f), two = hn::Set(d, 2.0f);
  const V rest = hn::Div(two, hn::Add(exp_vector(d, hn::Mul(two, size)), one));
  const V large = hn::Mul(factor, hn::CopySignToAbs(hn::Sub(one, rest), x));
  return hn::IfThenElse(hn::Gt(size, hn::Set(d, kTanhSmall)), large, tanh_small(d, x, factor));
}

}  // namespace
}  // namespace mh::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
