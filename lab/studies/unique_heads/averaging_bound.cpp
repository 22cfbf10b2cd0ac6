// 003.5: what follows from the formulas for one head and for two.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "lab/studies/claim_words.h"
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

Matrix identity(int64_t n) {
  Matrix a(n, n);
  for (int64_t i = 0; i < n; ++i) a(i, i) = 1;
  return a;
}

/// Of a layer with these heads, W^O = `out` and this read-out; values are the rows as they are.
double error_of(const std::vector<BuiltHead>& heads, const Matrix& out, const Matrix& read,
                const Batch& test) {
  const auto count = static_cast<int>(heads.size());
  constexpr int kReaderKey = 4;  // Reader's d_key; the scale is 1 / sqrt(kReaderKey)
  Matrix q(kRow, count * kReaderKey), b_q(1, q.cols()), k(kRow, q.cols());
  for (int h = 0; h < count; ++h) {
    const BuiltHead& head = heads[static_cast<size_t>(h)];
    b_q(0, h * kReaderKey) = std::sqrt(kReaderKey);
    for (int c = 0; c < kContent; ++c) k(c, h * kReaderKey) = head.u(c, 0);
    for (int t = 0; t < kWords; ++t) k(kContent + t, h * kReaderKey) = head.score[t] / kMark;
  }
  Reader reader(count, 0, 1);
  Layer& layer = reader.layer();
  layer.set("w_q", q), layer.set("b_q", b_q), layer.set("w_k", k);
  layer.set("w_v", beside(std::vector<Matrix>(heads.size(), identity(kRow))));
  layer.set("w_o", out);
  for (const char* bias : {"b_k", "b_v", "b_o"}) layer.set(bias, Matrix(1, layer.parameter(bias).cols()));
  reader.set_readout(read);
  return reader.error(test);
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
  return error_of({head}, identity(kRow), read, test);
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
  return error_of(heads, out, columns(identity(kRow), 0, kContent), test);
}

/// The error of the best reader that knows all that the proof of least_error() tells it: what the rows of
/// [A_1 I, A_2 I], [u^T, 0] and [0, u^T] leave of [P, R]. Each further head adds rows like the first.
double error_of_told_reader(const Target& y, double a1, double a2, const Matrix& u, bool second_head) {
  const int heads = second_head ? 2 : 1;
  Matrix known(heads * kContent + 2, 2 * kContent);
  for (int i = 0; i < kContent; ++i) {
    known(i, i) = a1, known(i, kContent + i) = a2;
    if (second_head) known(kContent + i, i) = a2, known(kContent + i, kContent + i) = -a1;
    known(heads * kContent, i) = known(heads * kContent + 1, kContent + i) = u(i, 0);
  }
  const Matrix rows = transposed(known), wanted = transposed(beside({y.p, y.r})),
               best = least_squares(rows.view(), wanted.view());
  return std::pow(norm(sum(product(rows, best), wanted, -1)), 2);
}

}  // namespace

/// mistake 1: R = 2 P; 2: a second head is told, too; 3: u is the second singular vector; 4: the weights do not
/// depend on the words; 5: both heads read word 1.
Claim averaging_bound(const AlgebraCase& a) {
  Claim claim = claim_without_figures("003.5");
  Target y = draw_target(a.seed);
  if (a.mistake == 1) y.r = scaled(y.p, 2);
  const double bound = least_error(y);
  decide(claim, bound > 0.001 * y.variance(),
         fmt::format("{} %; weights that depend on positions alone have a bound of {} %", percent(bound, y),
                     percent(least_error_by_position(y), y)));
  Random random(a.seed, 353);
  double least = y.variance();
  for (int reader = 0; reader < 2000; ++reader) {
    const double share = random.uniform();
    least = std::min(
        least, error_of_told_reader(y, share, 1 - share, random_matrix(kContent, 1, random), a.mistake == 2));
  }
  decide(claim, least >= bound * (1 - 1e-9),
         fmt::format("the least error is {} %, the bound {} %", percent(least, y, 2), percent(bound, y, 2)));
  const auto away = [&](double error) { return std::abs(error / bound - 1); };
  const double angle = angle_of_least_error(y);
  const int vector = a.mistake == 3 ? 1 : 0;
  const Matrix u = columns(svd(mixture(y, angle).view()).right, vector, vector + 1);
  const double reached = error_of_told_reader(y, std::sin(angle), std::cos(angle), u, false);
  decide(claim, away(reached) <= 1e-6, fmt::format("{:.1e} of it away", away(reached)));
  const Batch test = make_batch(y, 1 << 16, random);
  const double built = error_of_best_head(y, test, a.mistake != 4);
  decide(claim, away(built) <= 0.05, fmt::format("{:.3f} times the bound", built / bound));
  const double two = error_of_two_heads(y, test, a.mistake == 5);
  decide(claim, two <= 1e-10 * y.variance(), fmt::format("{:.1e} of it", two / y.variance()));
  return claim;
}

}  // namespace mh::unique_heads
