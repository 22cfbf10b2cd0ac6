// Rotary positions (Su et al. 2021, "RoFormer", eq. 34): pair i of a head's numbers is turned by the angle
// p * base^(-2i / rotated) at position p. The score of a turned query with a turned key then depends on the
// distance of their positions alone. Queries and keys are turned before attention; values are not.
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

/// Slows the turning down for sequences longer than those of training.
struct RotaryScaling {
  enum class Kind {
    kNone,
    kLinear,  // all pairs: the angle of position p / factor (Chen et al. 2023)
    kLlama3,  // pairs that turn less than low_turns times in original_positions: as kLinear; those that turn
              // more than high_turns times: as they are; in between a mixture of both (Llama 3.1)
    kYarn,    // the same, but the mixture goes by the number of the pair, not by its turns (Peng et al. 2023)
    kFactors,  // pair i: the angle of position p / factors[i] (LongRoPE, Ding et al. 2024)
  };
  Kind kind = Kind::kNone;
  double factor = 1;
  double low_turns = 1, high_turns = 4;  // of kLlama3 and kYarn
  int32_t original_positions = 8192;     // of kLlama3 and kYarn
  bool whole_pairs = true;               // of kYarn: the mixture begins and ends at whole numbers of pairs
  std::span<const double> factors = {};  // of kFactors, [rotated / 2]
  double amplitude = 1;                  // the numbers that turn are multiplied by it

  /// Compares the factors' numbers, wherever they lie.
  bool operator==(const RotaryScaling& other) const;
};

/// The angle by which pair i turns from one position to the next.
double rotary_speed(int i, int rotated, double base, const RotaryScaling& scaling = {});

/// What is turned, and how far. Heads lie side by side in a row, [N, H * D] with any row stride, straight
/// out of a packed projection. Exactly one of `offsets` and `positions` is given.
struct Rotary {
  int heads = 1;        // H
  int d_head = 0;       // D: 2 ... 1024
  int rotated = 0;      // the first numbers of each head that turn: even, 2 ... d_head; the others stay
  double base = 10000;  // above 0; larger turns slower
  RotaryScaling scaling = {};
  RotaryPairs pairs = RotaryPairs::kHalves;
  std::span<const int32_t> offsets = {};    // [S + 1] of a ragged batch: each sequence begins at position 0
  std::span<const int32_t> positions = {};  // or [N], each 0 ... kRotaryPositions - 1
};
inline constexpr int32_t kRotaryPositions = 1 << 24;

/// y = x turned, both [N, H * D]; y may be x. Throws ShapeError or UsageError naming the field of an
/// impossible description. Sines and cosines are computed once for each (rotated, base, scaling) and kept
/// (rotary_table.h).
void rotate(const Rotary& rotary, ConstMatrixView x, MatrixView y);

/// dx = dy turned back, which is the gradient: a rotation's transpose is its inverse (times the square of the amplitude). dx may
/// be dy.
void rotate_gradient(const Rotary& rotary, ConstMatrixView dy, MatrixView dx);

}  // namespace mh
