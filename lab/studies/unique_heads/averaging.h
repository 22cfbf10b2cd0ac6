// 003.5: "With a single attention head, averaging inhibits this" (Vaswani et al. 2017, section 3.2.2), as a
// task: a query wants P x_1 + R x_2 of two other words, whose contents x_t are independent and normal.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lab/studies/claim.h"
#include "lab/studies/lab.h"
#include "multihead/autograd/affine.h"
#include "multihead/base/random.h"

namespace mh::unique_heads::averaging {

using lab::Layer;
using lab::Matrix;

inline constexpr int kWords = 4, kContent = 3, kRow = kContent + kWords;
inline constexpr float kMark = 3;  // in the column that says which word it is

struct Target {
  Matrix p, r;
  double variance() const { return lab::norm(p) * lab::norm(p) + lab::norm(r) * lab::norm(r); }
};
/// Normal numbers.
Target draw_target(uint64_t draw);
/// "15.2": in % of the target's variance.
std::string percent(double error, const Target& y, int digits = 1);

/// cos(angle) P - sin(angle) R
Matrix mixture(const Target& y, double angle);
/// The angle in [0, pi / 2] at which what rank 1 misses of mixture() is least.
double angle_of_least_error(const Target& y);
/// No function of one head's output has a smaller mean squared error than
///   min over 0 <= angle <= pi / 2 of what rank 1 misses of cos(angle) P - sin(angle) R.
/// Proof. A key is linear in its word, so log A_t - log A_s = u . (x_t - x_s) + b_ts, where u and b depend on
/// the query's word alone. Tell the reader of the head also x_0, x_3, u . x_1 and u . x_2. Then it knows all
/// weights A, and of the output, sum_t A_t (V x_t + v_t), only w = A_1 x_1 + A_2 x_2 is new to it. Given A, all
/// of this is linear in x_1 and x_2, of which the rest is still normal; so the best guess of the target is
/// P' x_1 + R' x_2, P' = A_1 M + g_1 u^T, R' = A_2 M + g_2 u^T for some M and g; its error is
/// |P - P'|^2 + |R - R'|^2. Let (sin, cos) of the angle be (A_1, A_2) / |(A_1, A_2)|: then cos P' - sin R' has rank
/// at most 1, and the error is at least |cos (P - P') - sin (R - R')|^2 by Cauchy and Schwarz. The minimum over all
/// A is the bound.
///
/// The bound is the infimum: heads with A_0 = A_3 = 0 and u -> 0, whose values of positions grow as 1 / |u|,
/// come as near as one likes, with a linear read-out (error_of_best_head()).
double least_error(const Target& y);
/// The same for weights that depend on positions alone: P' = A_1 M, R' = A_2 M.
double least_error_by_position(const Target& y);

struct Batch {
  Tensor x;       // [sentences * kWords, kRow]: content, then which word it is
  Matrix target;  // [sentences, kContent], of word 0
  Ragged ragged;
  Sequences sequences() const { return {.ids = {}, .ragged = &ragged, .sentences = {}}; }
};

Batch make_batch(const Target& y, int sentences, Random& random);

/// An attention layer and a linear read-out. With `wide` above 0 a feed-forward layer of that width stands
/// between them.
class Reader {
 public:
  Reader(int heads, int wide, uint64_t seed);

  Layer& layer() { return layer_; }
  void set_readout(const Matrix& w);
  std::vector<NamedParameter> parameters();
  Var operator()(Tape& tape, const Batch& batch);
  /// Mean squared, summed over the outputs.
  double error(const Batch& batch);

 private:
  Layer layer_;
  int wide_;
  Parameter in_, in_bias_, read_, read_bias_;
  Affine inner_, readout_;
};

/// What trainings for one draw of P and R reached: mean squared errors on test sentences, one for each start.
struct Reached {
  uint64_t draw = 0;
  Target target;
  std::vector<double> one_head = {}, feed_forward = {},
                      two_heads = {};  // the last two from the first starts of one_head
};
/// 003.5, trained, with the verdicts that these errors give: at least one draw, and at least one error of each layer.
/// The first draw says how many starts there are; all draws have that many.
Claim claim_of(std::span<const Reached> draws);

}  // namespace mh::unique_heads::averaging
