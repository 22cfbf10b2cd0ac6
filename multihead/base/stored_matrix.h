// A view of a matrix as a file stores it: float32, bfloat16 or float16, transposed or not, part of a wider matrix
// or not.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "multihead/base/matrix_view.h"

namespace mh {

enum class NumberType { kFloat32, kBFloat16, kFloat16 };

/// Bytes of one number.
constexpr int64_t number_size(NumberType type) {
  return type == NumberType::kFloat32 ? 4 : 2;
}

/// bfloat16 is the upper half of a float32.
inline float from_bfloat16(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

/// The nearest bfloat16, of two as near the even one. The number must be finite; it may become infinite.
inline uint16_t to_bfloat16(float number) {
  const auto bits = std::bit_cast<uint32_t>(number);
  return static_cast<uint16_t>((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16);
}

/// float16 (IEEE 754 binary16), exactly.
inline float from_float16(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16;
  const uint32_t exponent = (half >> 10) & 0x1Fu;
  const uint32_t mantissa = half & 0x3FFu;
  if (exponent == 0x1F) return std::bit_cast<float>(sign | 0x7F800000u | (mantissa << 13));  // infinity, NaN
  if (exponent == 0) {
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;  // subnormal, exact
    return sign != 0 ? -magnitude : magnitude;
  }
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
}

/// The nearest float16, of two as near the even one; beyond 65,504 infinite. The number must be finite.
inline uint16_t to_float16(float number) {
  const auto bits = std::bit_cast<uint32_t>(number);
  const auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000u);
  const uint32_t magnitude = bits & 0x7FFFFFFFu;
  if (magnitude >= 0x477FF000u) return sign | 0x7C00u;  // from 65,520 on
  if (magnitude < 0x38800000u) {  // below 2^-14: subnormal; the sum rounds it to multiples of 2^-24
    return sign | static_cast<uint16_t>(std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) -
                                        0x3F000000u);
  }
  const uint32_t rounded = magnitude + 0xFFFu + ((magnitude >> 13) & 1u);
  return sign | static_cast<uint16_t>((rounded - 0x38000000u) >> 13);
}

/// [rows, cols] in memory that somebody else owns and nobody changes. Number (i, j) lies i * row_stride +
/// j * col_stride numbers after the first; one of the strides is 1. The bytes need no alignment.
struct StoredMatrix {
  const std::byte* data = nullptr;
  NumberType type = NumberType::kFloat32;
  int64_t rows = 0, cols = 0;
  int64_t row_stride = 0, col_stride = 1;

  static StoredMatrix of(ConstMatrixView view) {
    return {.data = reinterpret_cast<const std::byte*>(view.data),
            .rows = view.rows,
            .cols = view.cols,
            .row_stride = view.stride};
  }

  const std::byte* at(int64_t i, int64_t j) const {
    return data + (i * row_stride + j * col_stride) * number_size(type);
  }
  float operator()(int64_t i, int64_t j) const {
    if (type == NumberType::kFloat32) {
      float number = 0;
      std::memcpy(&number, at(i, j), sizeof number);
      return number;
    }
    uint16_t bits = 0;
    std::memcpy(&bits, at(i, j), sizeof bits);
    return type == NumberType::kBFloat16 ? from_bfloat16(bits) : from_float16(bits);
  }
  /// to[n] = (i, j + n) for n = 0 ... count - 1.
  void read_row(int64_t i, int64_t j, int64_t count, float* to) const {
    if (type == NumberType::kFloat32 && col_stride == 1) {
      std::memcpy(to, at(i, j), static_cast<size_t>(count) * sizeof(float));
      return;
    }
    for (int64_t n = 0; n < count; ++n) to[n] = (*this)(i, j + n);
  }

  StoredMatrix transposed() const { return {data, type, cols, rows, col_stride, row_stride}; }
  /// Columns [begin, end): one part of a matrix that holds several side by side.
  StoredMatrix columns_between(int64_t begin, int64_t end) const {
    MH_ASSERT(0 <= begin && begin <= end && end <= cols);
    return {at(0, begin), type, rows, end - begin, row_stride, col_stride};
  }
  StoredMatrix rows_between(int64_t begin, int64_t end) const {
    MH_ASSERT(0 <= begin && begin <= end && end <= rows);
    return {at(begin, 0), type, end - begin, cols, row_stride, col_stride};
  }
};

}  // namespace mh
