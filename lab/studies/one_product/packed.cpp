// 004.1: the product of all heads' matrices at once, and one by one.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>

#include "lab/studies/lab.h"
#include "lab/studies/one_product/claims.h"
#include "multihead/autograd/affine.h"

namespace mh::one_product {
namespace {

using namespace lab;

struct Packing {
  bool same_bits = true;
  double ulps = 0;               // of the largest term
  int64_t columns = 0;           // of the packed product
  double packed = 0, apart = 0;  // seconds
};

/// x [W_1 ... W_h] beside x W_1, ..., x W_h.
Packing pack(int tokens, int d_model, int heads, int d_key, uint64_t seed, bool transposed_weight) {
  Random random(seed, 41);
  const Tensor x = in_float(random_matrix(tokens, d_model, random));
  std::vector<Parameter> weights(static_cast<size_t>(heads));
  std::vector<const Parameter*> all;
  double most = 0;
  for (Parameter& w : weights) {
    w = Parameter(d_model, d_key);
    w.value = in_float(random_matrix(d_model, d_key, random));
    most = std::max(most, largest(in_double(w.value.view())));
    all.push_back(&w);
  }
  Affine together(all, {});
  std::vector<Affine> one;
  std::vector<Parameter> turned(weights.size());
  for (size_t h = 0; h < weights.size(); ++h) {
    turned[h].value = transposed_weight ? in_float(transposed(in_double(weights[h].value.view()))) : Tensor();
    one.emplace_back(std::vector<const Parameter*>{transposed_weight ? &turned[h] : &weights[h]},
                     std::vector<const Parameter*>{});
  }
  Packing result;
  // The largest term of any of the sums, at most: the unit that rounding is counted in.
  const double unit = std::ldexp(most * largest(in_double(x.view())), -23);
  const auto now = [] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  };
  std::vector<double> packed, apart;
  for (int repeat = 0; repeat < 21; ++repeat) {
    Tape tape;
    const Var input = tape.constant(const_cast<Tensor&>(x).view());
    const double start = now();
    const Var y = affine(tape, input, together);
    const double middle = now();
    std::vector<Var> parts;
    for (Affine& w : one) parts.push_back(affine(tape, input, w));
    const double end = now();
    packed.push_back(middle - start), apart.push_back(end - middle);
    result.columns = y.cols();
    for (size_t h = 0; h < parts.size() && repeat == 0; ++h) {
      for (int t = 0; t < tokens; ++t) {
        for (int c = 0; c < d_key; ++c) {
          const float a = y.value()(t, static_cast<int64_t>(h) * d_key + c), b = parts[h].value()(t, c);
          result.same_bits = result.same_bits && a == b;
          result.ulps =
              std::max(result.ulps, std::abs(static_cast<double>(a) - static_cast<double>(b)) / unit);
        }
      }
    }
  }
  result.packed = median(packed);
  result.apart = median(apart);
  return result;
}

}  // namespace

/// mistake 1: the separate matrices are transposed; 2: d_k = d/h.
Claim packed_product(const AlgebraCase& a) {
  Claim claim{
      .id = "004.1",
      .statement =
          "One product x [W_1 ... W_h] computes what the h separate products x W_1, ..., x W_h compute: the "
          "heads' matrices are blocks of a larger one.",
      .original_words =
          "\"If single Q matrix is 10x8 and there are 8 heads then the actual Q matrix is just 10x64.\"",
      .original_remark =
          "Eight heads of d_k = d = 8 are Bloem's wide attention; in the paper d_k = d/h, and Q stays 10 x "
          "8."};
  Table table{"", {"T, d, h, d_k", "bit for bit", "ulp", "packed us", "separate us", "ratio"}, {}};
  double worst = 0;
  bool bits = true;
  int64_t askers = 0;
  for (const auto& [t, d, h] : {std::array{10, 8, 8}, std::array{29, 128, 4}, std::array{64, 512, 8}}) {
    const bool asked = d == 8;
    // A matrix must be square to be mistaken for its transpose.
    const int key = a.mistake == 1 ? d : asked && a.mistake != 2 ? d : d / h;
    const Packing p = pack(t, d, h, key, a.seed, a.mistake == 1);
    worst = std::max(worst, p.ulps);
    bits = bits && p.same_bits;
    if (asked) askers = p.columns;
    table.rows.push_back({fmt::format("{}, {}, {}, {}", t, d, h, key), p.same_bits ? "yes" : "no",
                          fmt::format("{:.2g}", p.ulps), fmt::format("{:.1f}", 1e6 * p.packed),
                          fmt::format("{:.1f}", 1e6 * p.apart), fmt::format("{:.1f}", p.apart / p.packed)});
  }
  claim.clauses.push_back(algebraic("Its numbers are those of the separate products.",
                                    "at most 2 ulp of the largest term apart",
                                    fmt::format("{:.2g} ulp{}", worst, bits ? ", bit for bit the same" : ""),
                                    worst <= 2, OriginalSays::kSame));
  claim.clauses.push_back(algebraic("With T = 10, d = 8 and 8 heads of d_k = 8, Q is 10 x 64.", "64 columns",
                                    fmt::format("{} columns", askers), askers == 64, OriginalSays::kSame));
  claim.clauses.push_back(
      measured_only("How much quicker one product is.",
                    fmt::format("separate products take {}, {} and {} times as long in the three shapes",
                                table.rows[0][5], table.rows[1][5], table.rows[2][5]),
                    Evidence::kAlgebra));
  claim.tables.push_back(std::move(table));
  return claim;
}

}  // namespace mh::one_product
