#include "multihead/nn/attention.h"

#include "multihead/autograd/ops.h"

namespace mh {

template <class T>
AttentionResult<T> attention_formula(BasicTape<T>& tape, BasicVar<T> q, BasicVar<T> k, BasicVar<T> v,
                                     T scale_factor, const Mask& mask, const std::optional<BasicVar<T>>& bias,
                                     std::optional<T> soft_cap) {
  using namespace ops;
  const auto scores = matmul_transposed(tape, q, k);      // [Tq, Tk]
  const auto scaled = scale(tape, scores, scale_factor);  // [Tq, Tk]
  const auto capped =
      soft_cap ? scale(tape, tanh(tape, scale(tape, scaled, 1 / *soft_cap)), *soft_cap) : scaled;
  const auto biased = bias ? add(tape, capped, *bias) : capped;  // [Tq, Tk]
  const auto weights = masked_softmax(tape, biased, mask);       // [Tq, Tk]
  const auto output = matmul(tape, weights, v);                  // [Tq, d_value]
  return {output, weights, scores, scaled, capped, biased};
}

template AttentionResult<float> attention_formula(BasicTape<float>&, BasicVar<float>, BasicVar<float>,
                                                  BasicVar<float>, float, const Mask&,
                                                  const std::optional<BasicVar<float>>&,
                                                  std::optional<float>);
template AttentionResult<double> attention_formula(BasicTape<double>&, BasicVar<double>, BasicVar<double>,
                                                   BasicVar<double>, double, const Mask&,
                                                   const std::optional<BasicVar<double>>&,
                                                   std::optional<double>);

}  // namespace mh
