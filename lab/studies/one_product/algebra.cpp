// 004: one product, h matrices. What follows from the formulas.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>

#include "lab/studies/lab.h"
#include "lab/studies/one_product/claims.h"
#include "multihead/analysis/trace.h"
#include "multihead/autograd/affine.h"

namespace mh::one_product {
namespace {

using namespace lab;

struct Packing {
  bool same_bits = true;
  double ulps = 0;               // of the largest term
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

/// mistaken: the separate matrices are transposed.
Claim packed_product(const AlgebraCase& a) {
  Claim claim{
      .id = "004.1",
      .statement =
          "The packed product x [W_1 ... W_h] equals the h separate products; it is one product because "
          "that is quicker, not because the heads are one.",
      .original_words =
          "\"If single Q matrix is 10x8 and there are 8 heads then the actual Q matrix is just 10x64.\" "
          "(d_k = d = 8 there is Bloem's wide attention.)",
      .original_statement = OriginalStatement::kRight,
      .tolerance = "within 2 ulp of the largest term"};
  Table table{"", {"T, d, h, d_k", "bit for bit", "ulp", "packed us", "separate us", "ratio"}, {}};
  double worst = 0;
  bool bits = true;
  for (const auto& [t, d, h] : {std::array{10, 8, 8}, std::array{29, 128, 4}, std::array{64, 512, 8}}) {
    const int key =
        a.mistaken || d == 8 ? d : d / h;  // a transposed matrix must be square to be mistaken for it
    const Packing p = pack(t, d, h, key, a.seed, a.mistaken);
    worst = std::max(worst, p.ulps);
    bits = bits && p.same_bits;
    table.rows.push_back({fmt::format("{}, {}, {}, {}", t, d, h, key), p.same_bits ? "yes" : "no",
                          fmt::format("{:.2g}", p.ulps), fmt::format("{:.1f}", 1e6 * p.packed),
                          fmt::format("{:.1f}", 1e6 * p.apart), fmt::format("{:.1f}", p.apart / p.packed)});
  }
  claim.measured = fmt::format(
      "largest difference {:.2g} ulp of the largest term{}; at T = 10, d = 8, h = 8, d_k = 8 the "
      "packed product takes {} us, the eight separate ones {} us",
      worst, bits ? ", bit for bit the same" : "", table.rows[0][3], table.rows[0][4]);
  claim.tables.push_back(std::move(table));
  claim.verdict = worst <= 2 ? Verdict::kPass : Verdict::kFail;
  return claim;
}

Table matrix_table(std::string caption, const Matrix& a) {
  Table table{std::move(caption), {"query"}, {}};
  for (int64_t j = 0; j < a.cols(); ++j) table.columns.push_back(fmt::format("key {}", j));
  for (int64_t i = 0; i < a.rows(); ++i) {
    table.rows.push_back({std::to_string(i)});
    for (int64_t j = 0; j < a.cols(); ++j) table.rows.back().push_back(fmt::format("{:.2f}", a(i, j)));
  }
  return table;
}

struct Stacked {
  std::vector<Head> heads;
  Head one;  // the heads' matrices side by side
  Matrix x;
};
Stacked stacked(uint64_t seed) {
  Random random(seed, 42);
  Stacked s;
  constexpr HeadSizes kSizes{.heads = 3, .d_model = 12, .d_key = 4, .d_value = 4};
  s.heads = random_heads(kSizes, random);
  for (Head& head : s.heads) head.q = scaled(head.q, 2);  // so that there is something to see
  std::vector<Matrix> q, k, v, o;
  for (const Head& head : s.heads) {
    q.push_back(head.q), k.push_back(head.k), v.push_back(head.v), o.push_back(transposed(head.o));
  }
  s.one = {beside(q), beside(k), beside(v), transposed(beside(o))};
  s.x = random_matrix(4, kSizes.d_model, random);
  return s;
}

/// mistaken: a head is left out of the sum.
Claim scores_add_up(const AlgebraCase& a) {
  Claim claim{
      .id = "004.2",
      .statement =
          "Stacked heads' scores add up, sum_i Q_i K_i^T = Q K^T, but the softmax of the sum is not the "
          "heads' softmaxes: one T x T matrix against h of them.",
      .original_words =
          "\"Work out the dimensions of your attention matrix ... You get only one attention matrix.\"",
      .original_statement = OriginalStatement::kRight,
      .tolerance = "sums equal to 1e-12; every head's weights further than 0.05 from the single head's"};
  const Stacked s = stacked(a.seed);
  Matrix total(s.x.rows(), s.x.rows());
  for (size_t h = a.mistaken ? 1 : 0; h < s.heads.size(); ++h) total = sum(total, scores(s.x, s.heads[h]));
  const Matrix whole = scores(s.x, s.one);
  const double difference = largest_difference(total, whole) / largest(whole);
  const Matrix single = weights(s.x, s.one, 1 / std::sqrt(12));
  double nearest = 1;
  for (size_t h = 0; h < s.heads.size(); ++h) {
    const Matrix own = weights(s.x, s.heads[h], 1 / std::sqrt(4));
    nearest = std::min(nearest, largest_difference(own, single));
    claim.tables.push_back(matrix_table(fmt::format("weights of head {} (scale 1 / sqrt(4))", h), own));
  }
  claim.tables.push_back(
      matrix_table("weights of one head with the same matrices side by side (scale 1 / sqrt(12))", single));
  claim.measured = fmt::format(
      "scores: relative difference {:.1e}; the head nearest to the single one still differs by "
      "{:.2f} in a weight",
      difference, nearest);
  claim.verdict = difference <= 1e-12 && nearest > 0.05 ? Verdict::kPass : Verdict::kFail;
  return claim;
}

/// mistaken: both outputs are computed with the single head's weights.
Claim outputs_differ(const AlgebraCase& a) {
  Claim claim{
      .id = "004.3",
      .statement = "Hence a single head with the same numbers computes something else.",
      .original_words =
          "\"This is not the same output as one full sized output generated using one attention matrix.\"",
      .original_statement = OriginalStatement::kRight,
      .tolerance = "further apart than 0.05 of the norm"};
  const Stacked s = stacked(a.seed);
  const Matrix single = multi_head(s.x, {s.one}, 1 / std::sqrt(12));
  Matrix many(single.rows(), single.cols());
  for (const Head& head : s.heads) {
    const Matrix w =
        a.mistaken ? weights(s.x, s.one, 1 / std::sqrt(12)) : weights(s.x, head, 1 / std::sqrt(4));
    many = sum(many, product(product(w, product(s.x, head.v)), head.o));
  }
  const double distance = norm(sum(many, single, -1)) / norm(many);
  claim.measured = fmt::format(
      "three heads and one head with the same W^Q, W^K, W^V, W^O: outputs {:.2f} of the norm apart",
      distance);
  claim.verdict = distance > 0.05 ? Verdict::kPass : Verdict::kFail;
  return claim;
}

/// mistaken: the block is looked at after W^O.
Claim blocks(const AlgebraCase& a) {
  constexpr int kModel = 12, kHeads = 3, kSize = 4;
  Claim claim{
      .id = "004.4",
      .statement = "Before W^O, block i of the output depends on head i's matrices only.",
      .original_words =
          "\"Each attention matrix is used to generate a part of the output in multi-headed attention. All "
          "such outputs are concatenated.\"",
      .original_statement = OriginalStatement::kRight,
      .tolerance = "gradients of the other heads' matrices exactly 0"};
  Random random(a.seed, 44);
  const Matrix x = random_matrix(7, kModel, random);
  Layer layer({.heads = kHeads, .biases = Biases::kNone}, kModel, a.seed);
  double own_least = 1e30, others_most = 0;
  for (int i = 0; i < kHeads; ++i) {
    layer.clear_gradients();
    Matrix seed(x.rows(), kModel);
    for (int64_t t = 0; t < seed.rows(); ++t) {
      for (int c = 0; c < kSize; ++c) seed(t, i * kSize + c) = random.normal();
    }
    if (a.mistaken) {
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
  claim.measured = fmt::format("largest gradient of another head's matrices {}; of its own at least {:.2g}",
                               others_most, own_least);
  claim.verdict = others_most == 0 && own_least > 0 ? Verdict::kPass : Verdict::kFail;
  return claim;
}

/// Bytes that one forward pass of a layer needs.
size_t forward_bytes(int tokens, bool keep_weights) {
  constexpr int kModel = 64, kHeads = 8;
  struct Keeper : Observer {
    bool wants_weights(std::string_view) const override { return true; }
    void weights(const ObservedWeights&) override {}
  } keeper;
  Layer layer({.heads = kHeads}, kModel, 1);
  Random random(1, 45);
  const Tensor x = in_float(random_matrix(tokens, kModel, random));
  const Ragged ragged = Ragged::from_lengths(std::vector<int32_t>{tokens});
  Tape tape;
  Context context{.tape = tape, .observer = keep_weights ? &keeper : nullptr};
  layer.attention().self_heads(context, tape.constant(const_cast<Tensor&>(x).view()),
                               {.ids = {}, .ragged = &ragged, .sentences = {}}, Mask::none());
  return tape.arena().in_use();
}

/// mistaken: the fused pass is asked for the weights, too.
Claim memory(const AlgebraCase& a) {
  Claim claim{
      .id = "004.5",
      .statement = "h matrices of T x T cost memory only if they are kept; fused attention needs T d.",
      .tolerance =
          "kept: grows 14 to 17 times from T = 512 to 2,048 beyond what fused takes; fused: 3 to 5 times"};
  Table table{"bytes of one forward pass, d = 64, h = 8", {"T", "fused", "weights kept", "h T^2 x 4"}, {}};
  std::vector<double> fused, kept;
  for (const int t : {512, 1024, 2048}) {
    fused.push_back(static_cast<double>(forward_bytes(t, a.mistaken)));
    kept.push_back(static_cast<double>(forward_bytes(t, true)));
    table.rows.push_back({std::to_string(t), fmt::format("{:.0f}", fused.back()),
                          fmt::format("{:.0f}", kept.back()), std::to_string(8LL * t * t * 4)});
  }
  const double fused_growth = fused[2] / fused[0], kept_growth = (kept[2] - fused[2]) / (kept[0] - fused[0]);
  claim.measured = fmt::format(
      "from T = 512 to 2,048 fused grows {:.1f} times, the weights {:.1f} times; at 2,048 it is "
      "{:.1f} MiB against {:.1f} MiB",
      fused_growth, kept_growth, fused[2] / (1 << 20), kept[2] / (1 << 20));
  claim.tables.push_back(std::move(table));
  const bool right = fused_growth > 3 && fused_growth < 5 && kept_growth > 14 && kept_growth < 17;
  claim.verdict = right ? Verdict::kPass : Verdict::kFail;
  return claim;
}

/// mistaken: the head's weights are transposed before they meet its values.
Claim walk(const AlgebraCase& a) {
  constexpr int kTokens = 10, kModel = 8, kHeads = 8, kKey = 8;  // the asker's shape
  Claim claim{.id = "004.6",
              .statement =
                  "A step-by-step walk of one layer, every tensor with its shape, formula and owner: behind "
                  "the one product stand h matrices of weights.",
              .original_words =
                  "\"If single Q matrix is 10x8 and there are 8 heads then the actual Q matrix is just 10x64 "
                  "... multiplied by 64x8.\"",
              .original_statement = OriginalStatement::kRight,
              .tolerance =
                  "the walk's outputs equal the layer's to 1e-5; every head's output is its weights times "
                  "its values"};
  Random random(a.seed, 46);
  const Matrix x = random_matrix(kTokens, kModel, random);
  Layer layer({.heads = kHeads, .d_key = kKey, .biases = Biases::kNone}, kModel, a.seed);
  const Tensor rows = in_float(x);
  const AttentionTrace trace = trace_attention(layer.attention(), rows.view(), {}, Mask::none());
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
  int matrices = 0;
  double worst = 0;
  for (int h = 0; h < kHeads; ++h) {
    const auto step = [&](const char* name) {
      return in_double(trace.step(fmt::format("{}_{}", name, h)).value.view());
    };
    const Matrix w = step("weights"), output = step("z");
    matrices += w.rows() == kTokens && w.cols() == kTokens;
    worst = std::max(worst, largest_difference(product(a.mistaken ? transposed(w) : w, step("v")), output) /
                                largest(output));
  }
  const double difference = trace.difference / trace.magnitude;
  claim.measured = fmt::format(
      "{} tensors, {} matrices of weights [10, 10]; the walk is {:.1e} from the layer's own output",
      trace.steps.size(), matrices, difference);
  claim.tables.push_back(std::move(table));
  claim.verdict = difference <= 1e-5 && worst <= 1e-5 && matrices == kHeads ? Verdict::kPass : Verdict::kFail;
  return claim;
}

constexpr AlgebraCheck kChecks[] = {{"004.1", packed_product}, {"004.2", scores_add_up},
                                    {"004.3", outputs_differ}, {"004.4", blocks},
                                    {"004.5", memory},         {"004.6", walk}};

}  // namespace

std::span<const AlgebraCheck> algebra() {
  return kChecks;
}

}  // namespace mh::one_product
