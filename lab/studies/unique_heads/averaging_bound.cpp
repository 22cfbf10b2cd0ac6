// 003.5: what follows from the formulas for one head and for two.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "lab/studies/unique_heads/averaging.h"
#include "lab/studies/unique_heads/claims.h"

namespace mh::unique_heads {
namespace {

using namespace averaging;
using namespace lab;

/// The value and score part of one head: the key of word t scores u . x_t + score[t].
struct BuiltHead {
  Matrix u = Matrix(kContent, 1);
  double score[kWords] = {};
};

void set_head(Layer& layer, const std::vector<BuiltHead>& heads) {
  const auto count = static_cast<int64_t>(heads.size());
  constexpr int kReaderKey = 4;  // Reader's d_key; the scale is 1 / sqrt(kReaderKey)
  Matrix q(kRow, count * kReaderKey), k(kRow, count * kReaderKey), v(kRow, count * kRow),
      b_q(1, count * kReaderKey), none_k(1, count * kReaderKey), none_v(1, count * kRow);
  for (int64_t h = 0; h < count; ++h) {
    const BuiltHead& head = heads[static_cast<size_t>(h)];
    b_q(0, h * kReaderKey) = std::sqrt(kReaderKey);
    for (int c = 0; c < kContent; ++c) k(c, h * kReaderKey) = head.u(c, 0);
    for (int t = 0; t < kWords; ++t) k(kContent + t, h * kReaderKey) = head.score[t] / kMark;
    for (int c = 0; c < kRow; ++c) v(c, h * kRow + c) = 1;
  }
  layer.set("w_q", q), layer.set("b_q", b_q);
  layer.set("w_k", k), layer.set("b_k", none_k);
  layer.set("w_v", v), layer.set("b_v", none_v);
}

Matrix identity(int64_t n) {
  Matrix a(n, n);
  for (int64_t i = 0; i < n; ++i) a(i, i) = 1;
  return a;
}

/// The head of the proof of least_error(): u small, values of positions large. By words: not a constant u = 0.
double error_of_best_head(const Target& y, const Batch& test, bool by_words) {
  constexpr double kSmall = 0.02, kNever = -30, kInside = 0.003;  // no weight may be 0
  const double angle = std::clamp(angle_of_least_error(y), kInside, std::numbers::pi / 2 - kInside);
  const double total = std::cos(angle) + std::sin(angle), a1 = std::sin(angle) / total,
               a2 = std::cos(angle) / total;
  const Matrix wanted = mixture(y, angle);
  const Svd parts = svd(wanted.view());
  const Matrix missed = sum(wanted, parts.of_rank(1), -1);
  // P' + R', of the nearest P' and R' with cos P' - sin R' of rank 1
  const Matrix m = sum(sum(y.p, y.r), missed, std::sin(angle) - std::cos(angle));
  BuiltHead head;
  head.score[0] = head.score[3] = kNever;
  head.score[1] = std::log(a1), head.score[2] = std::log(a2);
  Matrix read(kRow, kContent);
  for (int i = 0; i < kContent; ++i) {
    head.u(i, 0) = by_words ? kSmall * parts.right(i, 0) : 0;
    for (int j = 0; j < kContent; ++j) read(j, i) = m(i, j);
    const double g = parts.values[0] * parts.left(i, 0) / total / kSmall;
    read(kContent + 1, i) = g / a1 / kMark;
    read(kContent + 2, i) = -g / a2 / kMark;
  }
  Reader reader(1, 0, 1);
  set_head(reader.layer(), {head});
  reader.layer().set("w_o", identity(kRow));
  reader.layer().set("b_o", Matrix(1, kRow));
  reader.set_readout(read);
  return reader.error(test);
}

/// Head 0 reads word 1, head 1 word 2; P and R are in W^O.
double error_of_two_heads(const Target& y, const Batch& test, bool both_read_word_1) {
  constexpr double kOnly = 40;
  std::vector<BuiltHead> heads(2);
  heads[0].score[1] = heads[1].score[both_read_word_1 ? 1 : 2] = kOnly;
  Matrix out(2 * kRow, kRow);
  for (int i = 0; i < kContent; ++i) {
    for (int j = 0; j < kContent; ++j) out(j, i) = y.p(i, j), out(kRow + j, i) = y.r(i, j);
  }
  Reader reader(2, 0, 1);
  set_head(reader.layer(), heads);
  reader.layer().set("w_o", out);
  reader.layer().set("b_o", Matrix(1, kRow));
  reader.set_readout(columns(identity(kRow), 0, kContent));
  return reader.error(test);
}

/// The error of the best reader that knows all that the proof of least_error() tells it: what the rows of
/// [A_1 I, A_2 I], [u^T, 0] and [0, u^T] leave of [P, R]. Each further head adds rows like the first.
double error_of_told_reader(const Target& y, double a1, double a2, const Matrix& u, bool second_head) {
  const int heads = second_head ? 2 : 1;
  Matrix known(heads * kContent + 2, 2 * kContent), wanted(2 * kContent, kContent);
  for (int i = 0; i < kContent; ++i) {
    known(i, i) = a1, known(i, kContent + i) = a2;
    if (second_head) known(kContent + i, i) = a2, known(kContent + i, kContent + i) = -a1;
    known(heads * kContent, i) = known(heads * kContent + 1, kContent + i) = u(i, 0);
    for (int j = 0; j < kContent; ++j) wanted(j, i) = y.p(i, j), wanted(kContent + j, i) = y.r(i, j);
  }
  const Matrix rows = transposed(known), best = least_squares(rows.view(), wanted.view());
  return std::pow(norm(sum(product(rows, best), wanted, -1)), 2);
}

}  // namespace

/// mistake 1: R = 2 P; 2: a second head is told, too; 3: u is the second singular vector; 4: the weights do not
/// depend on the words; 5: both heads read word 1.
Claim averaging_bound(const AlgebraCase& a) {
  Claim claim{
      .id = "003.5",
      .statement =
          "One head computes one weighted average, and so no function of its output gives P x_a + R x_b for "
          "all P and R, whatever the weights are. Two heads and a linear map give it.",
      .original_words =
          "\"With a single attention head, averaging inhibits this\" (the paper, quoted in the answer)."};
  Target y = draw_target(a.seed);
  if (a.mistake == 1) y.r = scaled(y.p, 2);
  const double bound = least_error(y);
  claim.clauses.push_back(
      algebraic("The error has a bound above 0: what the best matrix of rank 1 misses of cos(angle) P - "
                "sin(angle) R, at "
                "the angle where that is least.",
                "above 0.1 % of the variance of the target, for a random P and R",
                fmt::format("{} %; weights that depend on positions alone have a bound of {} %",
                            percent(bound, y), percent(least_error_by_position(y), y)),
                bound > 0.001 * y.variance(), OriginalSays::kSame));
  Random random(a.seed, 353);
  double least = y.variance();
  constexpr int kReaders = 2000;
  for (int i = 0; i < kReaders; ++i) {
    const double share = random.uniform();
    least = std::min(
        least, error_of_told_reader(y, share, 1 - share, random_matrix(kContent, 1, random), a.mistake == 2));
  }
  claim.clauses.push_back(algebraic(
      "No reader falls below the bound, even one that is told the other words, the weights and what they "
      "depend "
      "on.",
      fmt::format("none of {} random weights and dependences", kReaders),
      fmt::format("the least error is {} %, the bound {} %", percent(least, y, 2), percent(bound, y, 2)),
      least >= bound * (1 - 1e-9), OriginalSays::kSame));
  const double angle = angle_of_least_error(y);
  const int vector = a.mistake == 3 ? 1 : 0;
  const Matrix u = columns(svd(mixture(y, angle).view()).right, vector, vector + 1);
  const double reached = error_of_told_reader(y, std::sin(angle), std::cos(angle), u, false);
  claim.clauses.push_back(algebraic(
      "The bound cannot be raised: at the best angle, and with weights that depend on the first singular "
      "vector, such a reader has this error.",
      "equal to 1e-6 of the bound", fmt::format("{:.1e} of it away", std::abs(reached / bound - 1)),
      std::abs(reached / bound - 1) <= 1e-6));
  const Batch test = make_batch(y, 1 << 16, random);
  const double built = error_of_best_head(y, test, a.mistake != 4);
  claim.clauses.push_back(algebraic(
      "A head of the library, built so that its weights depend on the words a little, comes near to it.",
      "within 5 % of the bound, over 65,536 sentences", fmt::format("{:.3f} times the bound", built / bound),
      std::abs(built / bound - 1) <= 0.05));
  const double two = error_of_two_heads(y, test, a.mistake == 5);
  claim.clauses.push_back(algebraic(
      "Two heads, one for each of the two words, have no error.", "at most 1e-10 of the variance",
      fmt::format("{:.1e} of it", two / y.variance()), two <= 1e-10 * y.variance(), OriginalSays::kSame));
  return claim;
}

}  // namespace mh::unique_heads
