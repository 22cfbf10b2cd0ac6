// 002.3: the parameters and multiplications of a head's scores, with two matrices and with one.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "lab/studies/claim_words.h"
#include "lab/studies/two_matrices_or_one/claims.h"
#include "multihead/base/terminal_text.h"
#include "multihead/heads/reports/trace/trace.h"
#include "multihead/nn/ledger.h"

namespace mh::two_matrices_or_one {
namespace {

using namespace lab;

constexpr int kRowSize = 32;  // d

/// Two heads with values of 4 numbers.
Layer layer_of(int key, Scores scores, uint64_t seed) {
  return Layer({.heads = 2, .d_key = key, .d_value = 4, .scores = scores, .biases = Biases::kNone}, kRowSize,
               seed);
}

/// Of one head's scores with two matrices and with one: the layer's, less those of values and outputs.
std::pair<int64_t, int64_t> parameters_of_scores(int key, uint64_t seed) {
  const auto of = [&](Scores scores) {
    return (layer_of(key, scores, seed).parameter_count() - int64_t{2} * kRowSize * 2 * 4) / 2;
  };
  return {of(Scores::kQueryKey), of(Scores::kMerged)};
}

/// a b, counting each multiplication.
Matrix counting_product(const Matrix& a, const Matrix& b, int64_t& multiplications) {
  Matrix c(a.rows(), b.cols());
  for (int64_t i = 0; i < a.rows(); ++i) {
    for (int64_t j = 0; j < b.cols(); ++j) {
      for (int64_t k = 0; k < a.cols(); ++k, ++multiplications) c(i, j) += a(i, k) * b(k, j);
    }
  }
  return c;
}

/// Computes the scores of head 0 of a layer again, from the layer's own rows and matrices. Returns the multiplications;
/// `worst` becomes at least the difference from the scores of the layer itself.
int64_t count(int tokens, int key, Scores scores, const AlgebraCase& a, double& worst) {
  Layer layer = layer_of(key, scores, a.seed);
  Random random(a.seed, 23);
  const Tensor x = in_float(random_matrix(tokens, kRowSize, random));
  const AttentionTrace trace = trace_attention(layer.attention(), x.view(), {}, Mask::none());
  const auto step = [&](const char* name) { return in_double(trace.step(name).value.view()); };
  int64_t all = 0;
  const bool two = scores == Scores::kQueryKey;
  const Matrix rows = step("x");
  const Matrix q = counting_product(rows, step(!two ? "w_qk_0" : a.mistake == 6 ? "w_k_0" : "w_q_0"), all);
  const Matrix k = two ? counting_product(rows, step("w_k_0"), all) : rows;
  if (a.mistake == 4 && two) counting_product(rows, step("w_k_0"), all);
  const Matrix found = counting_product(q, transposed(k), all);
  worst = std::max(worst, relative_difference(found, step("scores_0")));
  return all;
}

/// What a head's scores cost at the size of the paper, d = 512, by the ledger (000.3 checks it): parameters and, of 10
/// words, multiplications. The h heads share equally what they have together.
void add_paper_size(Claim& claim) {
  const auto add = [&](const std::string& name, HeadGeometry geometry, bool in_table) {
    geometry.biases = Biases::kNone;
    const Ledger book = ledger(geometry, 512, 10, 10);
    LedgerPart all;
    for (const char* part : {"queries", "keys", "scores"}) all += book.part(part);
    const int64_t numbers = all.parameters / geometry.heads;
    claim.plots[0].series.push_back({.name = name, .y = {static_cast<double>(numbers)}});
    if (in_table)
      claim.tables[1].rows.push_back(
          {name, grouped(numbers), grouped(all.parameters), grouped(all.multiply_adds / geometry.heads)});
  };
  claim.plots[0].marks = {{2}, {4}};  // those that the answer compares: two factors of 8 heads, one matrix
  for (const int h : {1, 2, 8, 16})
    add(fmt::format("two factors, {} head{}", h, h == 1 ? "" : "s"), {.heads = h}, h == 8);
  add("one matrix W_i", {.heads = 8, .scores = Scores::kMerged}, true);
  add("behind W^Q and W^K, 8 heads", geometry_preset("doubled", 8, 512), true);
  add("two matrices of d x d", {.heads = 8, .d_key = 512}, true);
}

}  // namespace

/// mistake 1: the keys' matrix is left out of the formula; 2: the head has the full size d_k = d;
/// 3: "from d_k >= d/2 on"; 4: the keys are computed twice; 5: "iff d_k > d/2", whatever T is;
/// 6: the keys' matrix makes the queries.
Claim numbers_to_keep(const AlgebraCase& a) {
  constexpr int kHeads = 8;
  constexpr int64_t d = kRowSize;
  Claim claim = claim_without_figures("002.3");
  int keys = 0, formulas = 0, iff = 0, shapes = 0, counts = 0, pays = 0;
  double difference = 0;
  for (const int key : {4, 8, 15, 16, 17, 24, 32}) {
    const auto [two, one] = parameters_of_scores(key, a.seed);
    ++keys;
    formulas += two == (a.mistake == 1 ? 1 : 2) * d * key && one == d * d;
    iff += (one < two) == (a.mistake == 3 ? 2 * key >= d : 2 * key > d);
    std::vector<std::string> row = {std::to_string(key), std::to_string(two), std::to_string(one)};
    for (const int t : {16, 64}) {
      const int64_t of_two = count(t, key, Scores::kQueryKey, a, difference),
                    of_one = count(t, key, Scores::kMerged, a, difference);
      ++shapes;
      counts += of_two == 2 * t * d * key + t * t * key && of_one == t * d * d + t * t * d;
      const bool said = a.mistake == 5 ? 2 * key > d : t * (d - key) < d * (2 * key - d);
      pays += said == (of_one < of_two);
      row.insert(row.end(), {std::to_string(of_two), std::to_string(of_one)});
    }
    claim.tables[0].rows.push_back(std::move(row));
  }
  const auto decide_count = [&](int right, int of) {
    decide(claim, right == of, fmt::format("as the formula says in {} of {} shapes", right, of));
  };
  decide_count(formulas, keys);
  const int usual = a.mistake == 2 ? kRowSize : kRowSize / kHeads;
  const auto [two, one] = parameters_of_scores(usual, a.seed);
  decide(claim, one == 4 * two, fmt::format("{} with two, {} with one", two, one));
  decide_count(iff, keys);
  decide_count(counts, shapes);
  decide_count(pays, shapes);
  decide_equal(claim, difference);
  add_paper_size(claim);
  return claim;
}

}  // namespace mh::two_matrices_or_one
