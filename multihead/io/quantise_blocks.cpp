#include "multihead/io/quantise_blocks.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "multihead/base/error.h"
#include "multihead/base/finite.h"
#include "multihead/base/stored_matrix.h"

namespace mh {
namespace {

constexpr int64_t kBlock = 32;

bool smaller_magnitude(float a, float b) {
  return std::fabs(a) < std::fabs(b);
}

/// What numbers are multiplied with, 1 / d. Infinite of the least numbers of float32, whose q are 0, as d is in float16.
float inverse_of(float d) {
  return d != 0 ? 1 / d : 0;
}

/// Writes d; returns whether it is finite.
bool put_scale(float d, std::byte* to) {
  const uint16_t half = to_float16(d);
  std::memcpy(to, &half, sizeof half);
  return std::isfinite(from_float16(half));
}

bool quantise_q8_0(const float* x, std::byte* to) {
  const float d = std::fabs(*std::max_element(x, x + kBlock, smaller_magnitude)) / 127;
  const float inverse = inverse_of(d);
  for (int64_t i = 0; i < kBlock; ++i)
    to[2 + i] = std::isinf(inverse) ? std::byte{0}
                                    : static_cast<std::byte>(static_cast<int8_t>(std::round(x[i] * inverse)));
  return put_scale(d, to);
}

bool quantise_q4_0(const float* x, std::byte* to) {
  const float d = *std::max_element(x, x + kBlock, smaller_magnitude) / -8;  // the first of several
  const float inverse = inverse_of(d);
  // The product is rounded to float32 before the sum, which a compiler might fuse: many x / d lie halfway between two integers.
  const auto q = [&](int64_t i) {
    if (std::isinf(inverse)) return 0;
    const auto product = static_cast<float>(static_cast<double>(x[i]) * static_cast<double>(inverse));
    return std::min(15, static_cast<int>(product + 8.5f));
  };
  constexpr int64_t kHalf = kBlock / 2;
  for (int64_t j = 0; j < kHalf; ++j) to[2 + j] = static_cast<std::byte>(q(j) | q(j + kHalf) << 4);
  return put_scale(d, to);
}

}  // namespace

bool quantise_blocks(BlockType type, std::span<const float> numbers, std::span<std::byte> to) {
  const int64_t bytes = block_layout(type).bytes, blocks = std::ssize(numbers) / kBlock;
  MH_ASSERT(can_quantise(type) && blocks * kBlock == std::ssize(numbers) && blocks * bytes == std::ssize(to));
  if (!all_finite(numbers)) return false;
  const auto quantise = type == BlockType::kQ8_0 ? quantise_q8_0 : quantise_q4_0;
  bool finite = true;
  for (int64_t b = 0; b < blocks; ++b)
    finite = quantise(numbers.data() + b * kBlock, to.data() + b * bytes) && finite;
  return finite;
}

}  // namespace mh
