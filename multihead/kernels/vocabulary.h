// The output layer: from states [N, d] to log-probabilities over a vocabulary of V tokens,
//
//   log p(w | state) = logit_w - log sum_v exp(logit_v),   logit_w = state . E_w + bias_w
//
// With a soft cap c a logit l becomes c tanh(l / c) (Gemma 2, Riviere et al. 2024).
//
// The matrix of logits [N, V] is never made: panels of a few columns are computed, used while they are in
// the cache, and overwritten.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "multihead/base/aligned.h"
#include "multihead/base/matrix_view.h"
#include "multihead/kernels/packed_matrix.h"

namespace mh {

/// The output layer: E^T [d, V] in panels, and what gradients of products with it read, where they are wanted.
struct OutputLayer {
  const PackedMatrix* logits = nullptr;         // E^T: [d, V]
  std::optional<GradientFactor> gradient = {};  // of E^T; for cross_entropy's d_states only
  ConstMatrixView bias;                         // [1, V], or empty
  std::optional<float> soft_cap = {};           // unset: logits are not capped
};

struct CrossEntropySums {
  double negative_log_likelihood = 0;  // sum over rows of -log p(target)
  double smoothed = 0;                 // sum of the loss with smoothing, before `scale`
};

/// loss_i = (1 - e) * -log p(target_i) + e / V * sum_w -log p(w),  e = label_smoothing
/// (Szegedy et al. 2016), scaled by `scale`. When gradients are wanted (d_states not empty), d_states [N,
/// d] is overwritten and d_embedding [V, d] is added to:
///   d logit_iw = scale * (p_iw - e / V - (1 - e) [w = target_i]),
/// times 1 - (logit_iw / soft_cap)^2 for what a soft cap made of it.
struct CrossEntropy {
  ConstMatrixView states;            // [N, d]
  std::span<const int32_t> targets;  // [N], each in [0, V)
  float label_smoothing = 0;
  float scale = 1;
  MatrixView d_states;
  MatrixView d_embedding;
};

/// Memory that one call after another uses; it grows to what the largest call needs.
class VocabularyScratch {
 public:
  float* floats(int64_t size) {
    floats_.resize(size);
    return floats_.data();
  }
  PackedMatrix& packed() { return packed_; }
  AlignedBuffer<std::byte>& rounded() { return rounded_; }

 private:
  AlignedBuffer<float> floats_;
  PackedMatrix packed_;
  AlignedBuffer<std::byte> rounded_;  // rows (kernels/product_rows.h)
};

CrossEntropySums cross_entropy(const OutputLayer& layer, const CrossEntropy& problem,
                               VocabularyScratch& scratch);

/// Writes log_probabilities[i] = log p(targets[i] | states row i).
void log_probabilities(const OutputLayer& layer, ConstMatrixView states, std::span<const int32_t> targets,
                       std::span<float> log_probabilities, VocabularyScratch& scratch);

/// A token that might come next and its natural-log probability.
struct Candidate {
  int32_t token = 0;
  float log_probability = 0;

  bool operator==(const Candidate&) const = default;
};

/// The k most probable tokens of each row, best first, ties in favour of the smaller token: out[i * k ... i *
/// k + k). Suppressed tokens cannot be candidates but keep their share of the probability. REQUIRES: 1 <= k
/// <= V - suppressed.size().
void best_candidates(const OutputLayer& layer, ConstMatrixView states, int k,
                     std::span<const int32_t> suppressed, std::span<Candidate> out,
                     VocabularyScratch& scratch);

}  // namespace mh
