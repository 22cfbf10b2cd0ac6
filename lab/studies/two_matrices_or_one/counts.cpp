// 002.3: the parameters and multiplications of a head's scores, with two matrices and with one.
#include <fmt/format.h>

#include <algorithm>

#include "lab/studies/lab.h"
#include "lab/studies/two_matrices_or_one/claims.h"
#include "multihead/heads/trace/trace.h"

namespace mh::two_matrices_or_one {
namespace {

using namespace lab;

/// A layer of two heads with values of 4 numbers.
Layer layer_of(int d_model, int key, Scores scores, uint64_t seed) {
  return Layer({.heads = 2, .d_key = key, .d_value = 4, .scores = scores, .biases = Biases::kNone}, d_model,
               seed);
}

/// Of one head's scores: the layer's, less those of values and outputs.
int64_t parameters_of(int d_model, int key, Scores scores, uint64_t seed) {
  return (layer_of(d_model, key, scores, seed).parameter_count() - int64_t{2} * d_model * 2 * 4) / 2;
}

/// a b, counting each multiplication.
Matrix counting_product(const Matrix& a, const Matrix& b, int64_t& multiplications) {
  Matrix c(a.rows(), b.cols());
  for (int64_t i = 0; i < a.rows(); ++i) {
    for (int64_t j = 0; j < b.cols(); ++j) {
      for (int64_t k = 0; k < a.cols(); ++k) {
        c(i, j) += a(i, k) * b(k, j);
        ++multiplications;
      }
    }
  }
  return c;
}

enum class CountMistake { kNone, kKeysTwice, kKeysForQueries };
struct Counted {
  int64_t multiplications = 0;
  double difference = 0;  // from the scores of the layer itself
};
/// Computes the scores of head 0 of a layer again, from the layer's own rows and matrices.
Counted count(int tokens, int d_model, int key, Scores scores, uint64_t seed, CountMistake slip) {
  Layer layer = layer_of(d_model, key, scores, seed);
  Random random(seed, 23);
  const Tensor x = in_float(random_matrix(tokens, d_model, random));
  const AttentionTrace trace = trace_attention(layer.attention(), x.view(), {}, Mask::none());
  const auto step = [&](const char* name) { return in_double(trace.step(name).value.view()); };
  Counted counted;
  int64_t& all = counted.multiplications;
  const bool two = scores == Scores::kQueryKey;
  const Matrix rows = step("x");
  const char* of_queries = slip == CountMistake::kKeysForQueries && two ? "w_k_0" : two ? "w_q_0" : "w_qk_0";
  const Matrix q = counting_product(rows, step(of_queries), all);
  const Matrix k = two ? counting_product(rows, step("w_k_0"), all) : rows;
  if (slip == CountMistake::kKeysTwice && two) counting_product(rows, step("w_k_0"), all);
  const Matrix expected = step("scores_0");
  counted.difference =
      largest_difference(counting_product(q, transposed(k), all), expected) / largest(expected);
  return counted;
}

}  // namespace

/// mistake 1: the keys' matrix is left out of the formula; 2: the head has the full size d_k = d;
/// 3: "from d_k >= d/2 on"; 4: the keys are computed twice; 5: "iff d_k > d/2", whatever T is;
/// 6: the keys' matrix makes the queries.
Claim numbers_to_keep(const AlgebraCase& a) {
  constexpr int kModel = 32, kHeads = 8;
  Claim claim{.id = "002.3",
              .statement =
                  "Two matrices have fewer parameters than one as long as d_k is below d/2. In "
                  "multiplications one matrix is the cheaper only for wide keys and short texts.",
              .original_words =
                  "\"The utility of using W^Q and W^K, rather than W, lies in the fact that they allow us to "
                  "add fewer parameters.\"",
              .original_remark =
                  "It holds for d_k = d/h with more than two heads, the case that the answer speaks of."};
  Table table{
      "the scores of one head, d = 32",
      {"d_k", "parameters: two", "one", "multiplications at T = 16: two", "one", "at T = 64: two", "one"},
      {}};
  int formulas = 0, iff = 0, counts = 0, pays = 0;
  const CountMistake slip = a.mistake == 4   ? CountMistake::kKeysTwice
                            : a.mistake == 6 ? CountMistake::kKeysForQueries
                                             : CountMistake::kNone;
  int shapes = 0;
  double difference = 0;
  for (const int key : {4, 8, 15, 16, 17, 24, 32}) {
    const int64_t two = parameters_of(kModel, key, Scores::kQueryKey, a.seed),
                  one = parameters_of(kModel, key, Scores::kMerged, a.seed);
    formulas += two == (a.mistake == 1 ? 1 : 2) * int64_t{kModel} * key && one == kModel * kModel;
    iff += (one < two) == (a.mistake == 3 ? 2 * key >= kModel : 2 * key > kModel);
    table.rows.push_back({std::to_string(key), std::to_string(two), std::to_string(one)});
    for (const int64_t t : {16, 64}) {
      const int tokens = static_cast<int>(t);
      const Counted of_two = count(tokens, kModel, key, Scores::kQueryKey, a.seed, slip),
                    of_one = count(tokens, kModel, key, Scores::kMerged, a.seed, slip);
      difference = std::max({difference, of_two.difference, of_one.difference});
      counts += of_two.multiplications == 2 * t * kModel * key + t * t * key &&
                of_one.multiplications == t * kModel * kModel + t * t * kModel;
      const bool said = a.mistake == 5 ? 2 * key > kModel : t * (kModel - key) < kModel * (2 * key - kModel);
      pays += said == (of_one.multiplications < of_two.multiplications);
      ++shapes;
      for (const Counted& counted : {of_two, of_one})
        table.rows.back().push_back(std::to_string(counted.multiplications));
    }
  }
  const auto add = [&](const char* statement, const char* asked, int right, int of) {
    claim.clauses.push_back(algebraic(
        statement, asked, fmt::format("as the formula says in {} of {} shapes", right, of), right == of));
  };
  const int keys = static_cast<int>(table.rows.size());
  add("A head's scores take 2 d d_k parameters with two matrices, d^2 with one.",
      "the parameters of the layers, counted, equal the formulas", formulas, keys);
  const int usual = a.mistake == 2 ? kModel : kModel / kHeads;
  const int64_t usual_two = parameters_of(kModel, usual, Scores::kQueryKey, a.seed),
                usual_one = parameters_of(kModel, usual, Scores::kMerged, a.seed);
  claim.clauses.push_back(
      algebraic("With d_k = d/h and 8 heads, two matrices have a quarter of the parameters of one.",
                "counted: 4 times as many with one matrix",
                fmt::format("{} with two, {} with one", usual_two, usual_one), usual_one == 4 * usual_two,
                OriginalSays::kSame));
  add("One matrix has fewer parameters if and only if d_k > d/2.",
      "so in the counts for d_k = 4, 8, 15, 16, 17, 24, 32 at d = 32", iff, keys);
  add("The scores of T words take 2 T d d_k + T^2 d_k multiplications with two matrices, T d^2 + T^2 d with "
      "one.",
      "multiplications counted one by one equal the formulas", counts, shapes);
  add("One matrix takes fewer multiplications if and only if T (d - d_k) < d (2 d_k - d).",
      "so in the counts for these d_k at T = 16 and 64", pays, shapes);
  claim.clauses.push_back(algebraic("The multiplications that were counted compute the scores of the layer.",
                                    "equal to 1e-5 of the largest",
                                    fmt::format("largest difference {:.1e}", difference),
                                    difference <= 1e-5));
  claim.tables.push_back(std::move(table));
  return claim;
}

}  // namespace mh::two_matrices_or_one
