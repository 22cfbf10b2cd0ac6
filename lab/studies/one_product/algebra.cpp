// 004: one product, h matrices. What follows from the formulas.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "lab/studies/lab.h"
#include "lab/studies/one_product/claims.h"
#include "multihead/heads/trace/trace.h"

namespace mh::one_product {

using namespace lab;

/// mistake 1: the block is looked at after W^O; 2: it is looked at in the columns of the next head.
Claim blocks(const AlgebraCase& a) {
  constexpr int kModel = 12, kHeads = 3, kSize = 4;
  Claim claim{
      .id = "004.4",
      .statement = "Before W^O, block i of the output depends on head i's matrices only.",
      .original_words =
          "\"Each attention matrix is used to generate a part of the output in multi-headed attention. All "
          "such outputs are concatenated.\""};
  Random random(a.seed, 44);
  const Matrix x = random_matrix(7, kModel, random);
  Layer layer({.heads = kHeads, .biases = Biases::kNone}, kModel, a.seed);
  double own_least = std::numeric_limits<double>::infinity(), others_most = 0;
  for (int i = 0; i < kHeads; ++i) {
    layer.clear_gradients();
    const int block = a.mistake == 2 ? (i + 1) % kHeads : i;
    Matrix seed(x.rows(), kModel);
    for (int64_t t = 0; t < seed.rows(); ++t) {
      for (int c = 0; c < kSize; ++c) seed(t, block * kSize + c) = random.normal();
    }
    if (a.mistake == 1) {
      layer.output_gradients(x, seed);
    } else {
      layer.input_gradient(x, seed);
    }
    for (const char* name : {"w_q", "w_k", "w_v"}) {
      const Matrix g = layer.gradient(name);
      for (int h = 0; h < kHeads; ++h) {
        const double most = largest(columns(g, h * kSize, (h + 1) * kSize));
        if (h == i)
          own_least = std::min(own_least, most);
        else
          others_most = std::max(others_most, most);
      }
    }
  }
  claim.clauses.push_back(
      algebraic("The gradients of a block with respect to the other heads' W^Q, W^K and W^V are 0.",
                "exactly 0", fmt::format("largest {}", others_most), others_most == 0, OriginalSays::kSame));
  claim.clauses.push_back(algebraic("With respect to its own head's they are not.",
                                    "each matrix has one above 1e-6",
                                    fmt::format("the largest of each is at least {:.2g}", own_least),
                                    own_least > 1e-6, OriginalSays::kSame));
  return claim;
}

/// mistake 1: the heads are put together in the wrong order; 2: the weights are transposed before they meet the
/// values; 3: head 0's weights are read for each head; 4: d_k = d/h; 5: the same 64 columns are one head.
Claim walk(const AlgebraCase& a) {
  constexpr int kTokens = 10, kModel = 8, kHeads = 8;  // the asker's shape
  const int key = a.mistake == 4 ? kModel / kHeads : kModel;
  Claim claim{
      .id = "004.6",
      .statement =
          "A walk through one layer step by step shows every tensor with its shape, formula and owner: "
          "behind the one product stand h matrices of weights.",
      .original_words =
          "\"If single Q matrix is 10x8 and there are 8 heads then the actual Q matrix is just 10x64 "
          "... multiplied by 64x8 ... So why isn't it just considered a single weight instead of "
          "multi-headed?\""};
  Random random(a.seed, 46);
  const Matrix x = random_matrix(kTokens, kModel, random);
  Layer layer({.heads = kHeads, .d_key = key, .biases = Biases::kNone}, kModel, a.seed);
  const Tensor rows = in_float(x);
  const AttentionTrace trace = trace_attention(layer.attention(), rows.view(), {}, Mask::none());
  const auto weight_matrices = [&](int heads, int size) {
    Layer other({.heads = heads, .d_key = size, .biases = Biases::kNone}, kModel, a.seed);
    const AttentionTrace walked = trace_attention(other.attention(), rows.view(), {}, Mask::none());
    return std::count_if(walked.steps.begin(), walked.steps.end(), [&](const TraceStep& step) {
      return step.name.starts_with("weights_") && step.value.rows() == kTokens &&
             step.value.cols() == kTokens;
    });
  };
  Table table{
      "the walk at T = 10, d = 8, h = 8, d_k = 8, head 0 and what all share (multihead trace prints the "
      "numbers)",
      {"tensor", "shape", "formula", "owner"},
      {}};
  for (const TraceStep& step : trace.steps) {
    const bool other = step.owner.find("head ") == 0 && step.owner != "head 0";
    if (other) continue;
    table.rows.push_back(
        {step.name, fmt::format("[{}, {}]", step.value.rows(), step.value.cols()), step.formula, step.owner});
  }
  const auto step = [&](const char* name, int h) {
    return in_double(trace.step(fmt::format("{}_{}", name, h)).value.view());
  };
  std::vector<Matrix> outputs, queries, weights;
  double worst = 0;
  for (int h = 0; h < kHeads; ++h) {
    const Matrix w = step("weights", h), output = step("z", h);
    worst = std::max(worst,
                     largest_difference(product(a.mistake == 2 ? transposed(w) : w, step("v", h)), output) /
                         largest(output));
    weights.push_back(a.mistake == 3 ? step("weights", 0) : w);
    queries.push_back(step("q", h));
    outputs.push_back(output);
  }
  if (a.mistake == 1) std::reverse(outputs.begin(), outputs.end());
  const Matrix expected = layer.heads(x);
  const double difference = largest_difference(beside(outputs), expected) / largest(expected);
  claim.clauses.push_back(
      algebraic("The walk ends where the layer ends: its heads' outputs side by side are the layer's.",
                "equal to 1e-5 of the largest", fmt::format("largest difference {:.1e}", difference),
                difference <= 1e-5));
  claim.clauses.push_back(algebraic("Each head's output is its own weights times its own values.",
                                    "equal to 1e-5 of the largest",
                                    fmt::format("largest difference {:.1e}", worst), worst <= 1e-5));
  double nearest = 1;
  for (size_t i = 0; i < weights.size(); ++i) {
    for (size_t j = 0; j < i; ++j) nearest = std::min(nearest, largest_difference(weights[i], weights[j]));
  }
  claim.clauses.push_back(algebraic(
      "No two heads have equal weights.", "any two differ by more than 0.001 in a weight",
      fmt::format("the nearest two differ by {:.3f}", nearest), nearest > 0.001, OriginalSays::kOpposite));
  const Matrix q = beside(queries), w_o = in_double(trace.step("w_o").value.view());
  claim.clauses.push_back(
      algebraic("With d_k = 8 the queries of all heads are 10 x 64, and W^O is 64 x 8.", "so in the walk",
                fmt::format("Q is {} x {}, W^O {} x {}", q.rows(), q.cols(), w_o.rows(), w_o.cols()),
                q.rows() == kTokens && q.cols() == 64 && w_o.rows() == 64 && w_o.cols() == kModel,
                OriginalSays::kSame));
  const int64_t matrices = a.mistake == 5 ? weight_matrices(1, kHeads * key) : weight_matrices(kHeads, key);
  claim.clauses.push_back(
      algebraic("Behind the one product x [W_1 ... W_8] stand 8 matrices of weights [10, 10].",
                "8 in the walk", std::to_string(matrices), matrices == kHeads, OriginalSays::kOpposite));
  claim.tables.push_back(std::move(table));
  return claim;
}

std::span<const AlgebraCheck> algebra() {
  static constexpr AlgebraCheck kChecks[] = {{"004.1", packed_product}, {"004.2", scores_add_up},
                                             {"004.3", outputs_differ}, {"004.4", blocks},
                                             {"004.5", memory},         {"004.6", walk}};
  return kChecks;
}

}  // namespace mh::one_product
