#include <algorithm>
#include <vector>

#include "multihead/kernels/elementwise.h"
#include "multihead/kernels/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "multihead/kernels/activation.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "multihead/kernels/exp-inl.h"

HWY_BEFORE_NAMESPACE();
namespace mh::HWY_NAMESPACE {
namespace {

template <class D, class V = hn::Vec<D>>
HWY_INLINE V sigmoid(D d, V x) {
  return hn::Div(hn::Set(d, 1.0f), hn::Add(hn::Set(d, 1.0f), exp_vector(d, hn::Neg(x))));
}

// Each activation f by f(x) and by the gradient dy f'(x), for a vector of inputs.

struct Relu {
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V value(D d, V x) {
    return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Zero(d), x);  // NaN stays NaN
  }
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V gradient(D d, V x, V dy) {
    return hn::IfThenElseZero(hn::Gt(x, hn::Zero(d)), dy);
  }
};

struct Swish {
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V value(D d, V x) {
    return hn::Mul(x, sigmoid(d, x));
  }
  // d/dx x s(x) = s (1 + x (1 - s)),  s = 1 / (1 + e^-x)
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V gradient(D d, V x, V dy) {
    const V one = hn::Set(d, 1.0f), s = sigmoid(d, x);
    return hn::Mul(dy, hn::Mul(s, hn::MulAdd(x, hn::Sub(one, s), one)));
  }
};

// (1 + tanh u) / 2 = 1 / (1 + e^-2u), so that x (1 + tanh u) / 2 = x s(v) with
// v = 2u = 2 sqrt(2 / pi) (x + 0.044715 x^3).
struct GeluTanh {
  static constexpr float kTwoRootTwoByPi = 1.5957691216057308f, kCube = 0.044715f;
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V share(D d, V x, V squared) {
    const V cubic = hn::MulAdd(hn::Mul(hn::Set(d, kCube), x), squared, x);
    return sigmoid(d, hn::Mul(hn::Set(d, kTwoRootTwoByPi), cubic));
  }
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V value(D d, V x) {
    return hn::Mul(x, share(d, x, hn::Mul(x, x)));
  }
  // d/dx x s(v) = s + x s (1 - s) v',  v' = 2 sqrt(2 / pi) (1 + 3 * 0.044715 x^2)
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V gradient(D d, V x, V dy) {
    const V one = hn::Set(d, 1.0f), squared = hn::Mul(x, x), s = share(d, x, squared);
    const V dv = hn::Mul(hn::Set(d, kTwoRootTwoByPi), hn::MulAdd(hn::Set(d, 3 * kCube), squared, one));
    return hn::Mul(dy, hn::MulAdd(hn::Mul(x, hn::Mul(s, hn::Sub(one, s))), dv, s));
  }
};

// x Phi(x). With z = |x| the tail Phi(-z) is e^(-z^2/2) R(z), where R, Mills' ratio / sqrt(2 pi), is smooth: a
// polynomial in t = 1 / (1 + 0.35 z). The coefficients minimise its relative error, 3.2e-8 for z up to 14.5, from
// where on the tail is below the least float. The gradient's density needs the same exponential.
struct Gelu {
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V bell(D d, V x) {  // e^(-x^2/2)
    return exp_vector(d, hn::Mul(hn::Mul(hn::Set(d, -0.5f), x), x));
  }
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V below(D d, V x, V bell) {  // Phi(x)
    const V one = hn::Set(d, 1.0f);
    const V t = hn::Div(one, hn::MulAdd(hn::Set(d, 0.35f), hn::Abs(x), one));
    V p = hn::Set(d, -0.0291578598f);
    p = hn::MulAdd(p, t, hn::Set(d, 0.144030802f));
    p = hn::MulAdd(p, t, hn::Set(d, -0.255838778f));
    p = hn::MulAdd(p, t, hn::Set(d, 0.159319457f));
    p = hn::MulAdd(p, t, hn::Set(d, -0.0232122025f));
    p = hn::MulAdd(p, t, hn::Set(d, 0.105552444f));
    p = hn::MulAdd(p, t, hn::Set(d, 0.119821301f));
    p = hn::MulAdd(p, t, hn::Set(d, 0.139863514f));
    p = hn::MulAdd(p, t, hn::Set(d, 0.139621307f));
    const V tail = hn::Mul(bell, hn::Mul(p, t));
    return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), tail, hn::Sub(one, tail));
  }
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V value(D d, V x) {
    return hn::Mul(x, below(d, x, bell(d, x)));
  }
  // d/dx x Phi(x) = Phi(x) + x phi(x),  phi(x) = e^(-x^2/2) / sqrt(2 pi)
  template <class D, class V = hn::Vec<D>>
  static HWY_INLINE V gradient(D d, V x, V dy) {
    const V e = bell(d, x);
    return hn::Mul(dy, hn::MulAdd(hn::Mul(x, hn::Set(d, 0.3989422804014327f)), e, below(d, x, e)));
  }
};

template <class Function>
void value_rows(const ConstMatrixView& z, const MatrixView& y) {
  const hn::ScalableTag<float> d;
  const hn::CappedTag<float, 1> one_lane;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t r = 0; r < z.rows; ++r) {
    const float* from = z.row(r);
    float* to = y.row(r);
    const auto run = [&](auto tag, int64_t c) HWY_ATTR {
      hn::StoreU(Function::value(tag, hn::LoadU(tag, from + c)), tag, to + c);
    };
    int64_t c = 0;
    for (; c + lanes <= z.cols; c += lanes) run(d, c);
    for (; c < z.cols; ++c) run(one_lane, c);
  }
}

template <class Function>
void gradient_rows(const ConstMatrixView& z, const ConstMatrixView& dy, const MatrixView& dz) {
  const hn::ScalableTag<float> d;
  const hn::CappedTag<float, 1> one_lane;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t r = 0; r < z.rows; ++r) {
    const float *zr = z.row(r), *from = dy.row(r);
    float* to = dz.row(r);
    const auto run = [&](auto tag, int64_t c) HWY_ATTR {
      hn::StoreU(Function::gradient(tag, hn::LoadU(tag, zr + c), hn::LoadU(tag, from + c)), tag, to + c);
    };
    int64_t c = 0;
    for (; c + lanes <= z.cols; c += lanes) run(d, c);
    for (; c < z.cols; ++c) run(one_lane, c);
  }
}

}  // namespace

void activate_rows(Activation activation, const ConstMatrixView& z, const MatrixView& y) {
  switch (activation) {
    case Activation::kNone:
      return;
    case Activation::kRelu:
      return value_rows<Relu>(z, y);
    case Activation::kSwish:
      return value_rows<Swish>(z, y);
    case Activation::kGeluTanh:
      return value_rows<GeluTanh>(z, y);
    case Activation::kGelu:
      return value_rows<Gelu>(z, y);
  }
}

void activation_gradient_rows(Activation activation, const ConstMatrixView& z, const ConstMatrixView& dy,
                              const MatrixView& dz) {
  switch (activation) {
    case Activation::kNone:
      return;
    case Activation::kRelu:
      return gradient_rows<Relu>(z, dy, dz);
    case Activation::kSwish:
      return gradient_rows<Swish>(z, dy, dz);
    case Activation::kGeluTanh:
      return gradient_rows<GeluTanh>(z, dy, dz);
    case Activation::kGelu:
      return gradient_rows<Gelu>(z, dy, dz);
  }
}

}  // namespace mh::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mh {
HWY_EXPORT(activate_rows);
HWY_EXPORT(activation_gradient_rows);

void activate(Activation activation, ConstMatrixView z, MatrixView y) {
  MH_ASSERT(z.rows == y.rows && z.cols == y.cols);
  if (activation != Activation::kNone) return HWY_DYNAMIC_DISPATCH(activate_rows)(activation, z, y);
  if (z.data != y.data) copy_or_add(z, y, Write::kOverwrite);
}

void activation_gradient(Activation activation, ConstMatrixView z, ConstMatrixView dy, MatrixView dz) {
  MH_ASSERT(dy.rows == dz.rows && dy.cols == dz.cols);
  if (activation != Activation::kNone)
    return HWY_DYNAMIC_DISPATCH(activation_gradient_rows)(activation, z, dy, dz);
  if (dy.data != dz.data) copy_or_add(dy, dz, Write::kOverwrite);
}

// One layer of a model's end takes it, of a few rows.
void activation_factor(Activation activation, ConstMatrixView z, ConstMatrixView dy, MatrixView dz) {
  MH_ASSERT(dy.rows == dz.rows && dy.cols == dz.cols && z.cols == dz.cols);
  const float at_zero = activation == Activation::kNone   ? 1.0f
                        : activation == Activation::kRelu ? 0.0f
                                                          : 0.5f;
  std::vector<float> values(static_cast<size_t>(z.cols));
  for (int64_t r = 0; r < dz.rows; ++r) {
    activate(activation, z.rows_between(r, r + 1), {values.data(), 1, z.cols, z.cols});
    for (int64_t c = 0; c < z.cols; ++c)
      dz(r, c) = dy(r, c) * (z(r, c) == 0 ? at_zero : values[static_cast<size_t>(c)] / z(r, c));
  }
}

}  // namespace mh
#endif
