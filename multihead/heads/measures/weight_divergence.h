// The Jensen-Shannon divergence of two heads' packed weights (packed_weights.h), with the same arithmetic wherever heads are compared.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "multihead/heads/measures/packed_weights.h"
#include "multihead/kernels/attention_rows.h"

namespace mh {

/// The entropy of (a + b) / 2, summed over cells. Of one head with itself it is its entropy, so that equal heads have a divergence
/// of exactly 0.
inline double entropy_of_both(const float* a, const float* b, int64_t cells) {
  return mixed_entropy(ConstMatrixView(a, 1, cells), ConstMatrixView(b, 1, cells), KeysSeen::kAll);
}

/// JS(p, q) = H((p + q) / 2) - (H(p) + H(q)) / 2, not below 0 but for rounding.
inline double divergence_of(double of_both, double of_p, double of_q) {
  return std::max(0.0, of_both - 0.5 * (of_p + of_q));
}

/// A long sentence is compared by parts, so that those of two layers' heads stay in the cache; a part's sum is float32.
inline constexpr int64_t kCellsOfPart = 512;

template <class Compare>
void for_parts(int64_t cells, Compare&& compare) {
  for (int64_t begin = 0; begin < cells; begin += kCellsOfPart)
    compare(begin, std::min(kCellsOfPart, cells - begin));
}

inline size_t fold_of(const PackedWeights::Sentence& sentence) {
  return static_cast<size_t>(sentence.number) % kSimilarityFolds;
}

}  // namespace mh
