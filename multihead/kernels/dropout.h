// Dropout (Srivastava et al. 2014). What is dropped is a function of (seed, update, stream, sentence, place),
// so batching, accumulation, recomputation and threads cannot change it. No mask is stored: the backward
// pass computes it again.
#pragma once

#include <cstdint>
#include <span>

#include "multihead/base/matrix_view.h"
#include "multihead/base/random.h"

namespace mh {

/// The random numbers of one stream (one place in the model that drops values) in one update.
PhiloxKey dropout_stream(uint64_t seed, uint64_t update, uint32_t stream);

/// The dropout of one stream over a ragged batch; rate 0 means none.
struct Dropout {
  float rate = 0;                      // share of positions set to 0; the others are scaled by 1 / (1 - rate)
  PhiloxKey stream{};                  // dropout_stream(seed, update, stream)
  std::span<const int32_t> offsets;    // [S + 1] rows of each sequence (of the queries, for weights)
  std::span<const int64_t> sentences;  // [S] the sentence's number in the corpus

  bool active() const { return rate > 0; }
  /// A 16-bit number below this one drops: P(drop) = threshold / 65536.
  uint32_t threshold() const { return static_cast<uint32_t>(rate * 65536.0f + 0.5f); }
  float keep_scale() const { return 65536.0f / static_cast<float>(65536 - threshold()); }
};

/// The 16 random bits of element (row, column) of a sentence: counter {16 (column / 128) + column % 16, row,
/// sentence}, half-word (column / 16) % 8 of its 128 bits; 16 neighbouring columns lie in 16 lanes. The
/// kernels compute the same bits.
uint32_t element_bits(PhiloxKey stream, int64_t sentence, int64_t row, int64_t column);

/// The 16 random bits of the weight from `query` to `key` in a head: counter {key, query / 8, sentence,
/// head}, half-word query % 8; one vector of counters serves 8 queries.
uint32_t weight_bits(PhiloxKey stream, int64_t sentence, int64_t head, int64_t query, int64_t key);

/// The counters of the two functions above; both have room for sentences up to 2^40.
inline PhiloxCounter element_counter(int64_t sentence, int64_t row, int64_t column) {
  return {static_cast<uint32_t>(column / 128 * 16 + column % 16), static_cast<uint32_t>(row),
          static_cast<uint32_t>(sentence), static_cast<uint32_t>(sentence >> 32) << 24};
}
inline PhiloxCounter weight_counter(int64_t sentence, int64_t head, int64_t query, int64_t key) {
  return {static_cast<uint32_t>(key), static_cast<uint32_t>(query / 8), static_cast<uint32_t>(sentence),
          static_cast<uint32_t>(sentence >> 32) << 24 | static_cast<uint32_t>(head)};
}

/// y = x * keep / (1 - rate) for rows [row_begin, row_begin + x.rows) of the batch; x and y may be the same
/// memory. The backward pass is the same call on the gradient.
void dropout(const Dropout& settings, ConstMatrixView x, MatrixView y, int64_t row_begin = 0);

}  // namespace mh
