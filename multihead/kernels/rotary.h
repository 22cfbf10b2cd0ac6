// Rotary positions (Su et al. 2021, "RoFormer", eq. 34): pair i of a head's numbers is turned by the angle
// p * base^(-2i / rotated) at position p. The score of a turned query with a turned key then depends on the
// distance of their positions alone. Turn q and k before attention; v stays.
#pragma once

#include <cstdint>
#include <span>

#include "multihead/base/matrix_view.h"

namespace mh {

/// Which numbers of a head form a pair, among the first R = `rotated`.
enum class RotaryPairs {
  kHalves,      // x_i and x_(i + R / 2): Llama, GPT-NeoX
  kNeighbours,  // x_2i and x_(2i + 1): RoFormer, GPT-J
};

/// What is turned how far. Heads lie side by side in a row, [N, H * D] with any row stride, straight out of a
/// packed projection. Exactly one of `offsets` and `positions` is given.
struct Rotary {
  int heads = 1;        // H
  int d_head = 0;       // D: 2 ... 1024
  int rotated = 0;      // the first numbers of each head that turn: even, 2 ... d_head; the others stay
  double base = 10000;  // above 0; larger turns slower
  RotaryPairs pairs = RotaryPairs::kHalves;
  std::span<const int32_t> offsets = {};    // [S + 1] of a ragged batch: each sequence begins at position 0
  std::span<const int32_t> positions = {};  // or [N], each 0 ... kRotaryPositions - 1
};
inline constexpr int32_t kRotaryPositions = 1 << 24;

/// y = x turned, both [N, H * D]; y may be x. Throws ShapeError or UsageError naming the field of an
/// impossible description. Sines and cosines are computed once for each (rotated, base) and kept.
void rotate(const Rotary& rotary, ConstMatrixView x, MatrixView y);

/// dx = dy turned back, which is the gradient: a rotation's transpose is its inverse. dx may be dy.
void rotate_gradient(const Rotary& rotary, ConstMatrixView dy, MatrixView dx);

}  // namespace mh
