// The attention kernel on memory of its own, beside the formula: softmax(Q K^T / sqrt(D)) V, each query reading the
// keys before it and its own.
#include <cmath>
#include <cstdio>
#include <vector>

#include "multihead/attention.h"

int main() {
  constexpr int T = 7, H = 3, D = 5;  // tokens, heads, numbers in a head
  std::vector<float> q(T * H * D), k(q.size()), v(q.size()), y(q.size());
  for (size_t i = 0; i < q.size(); ++i) {
    q[i] = std::sin(0.7f * static_cast<float>(i)), k[i] = std::cos(1.3f * static_cast<float>(i));
    v[i] = std::sin(0.2f * static_cast<float>(i));
  }
  const std::vector<int32_t> offsets = {0, T};  // one sequence
  mh::AttentionInputs in;
  in.q = {q.data(), T, H * D}, in.k = {k.data(), T, H * D}, in.v = {v.data(), T, H * D};
  in.heads = in.key_heads = in.value_heads = H;
  in.d_key = in.d_value = D;
  in.query_offsets = in.key_offsets = offsets;
  in.scale = mh::attention_scale(D);
  in.mask = mh::Mask::causal();
  mh::attention_forward(in, {.output = {y.data(), T, H * D}});

  double worst = 0;
  for (int h = 0; h < H; ++h) {
    for (int i = 0; i < T; ++i) {
      std::vector<double> weight(static_cast<size_t>(i) + 1);
      double sum = 0;
      for (int j = 0; j <= i; ++j) {
        double score = 0;
        for (int c = 0; c < D; ++c) score += double{in.q(i, h * D + c)} * in.k(j, h * D + c);
        sum += weight[static_cast<size_t>(j)] = std::exp(score / std::sqrt(double{D}));
      }
      for (int c = 0; c < D; ++c) {
        double expected = 0;
        for (int j = 0; j <= i; ++j) expected += weight[static_cast<size_t>(j)] / sum * in.v(j, h * D + c);
        worst = std::fmax(worst, std::fabs(expected - y[static_cast<size_t>((i * H + h) * D + c)]));
      }
    }
  }
  std::printf("largest difference from the formula: %.1e\n", worst);
  return worst < 1e-6 ? 0 : 1;
}
