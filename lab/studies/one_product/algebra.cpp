// 004: one product, h matrices. What follows from the formulas.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <functional>
#include <limits>

#include "lab/studies/claim_words.h"
#include "lab/studies/lab.h"
#include "lab/studies/one_product/claims.h"
#include "multihead/autograd/affine.h"
#include "multihead/heads/reports/trace/trace.h"

namespace mh::one_product {
namespace {

using namespace lab;

struct Packing {
  double ulps = 0;               // of the largest term
  int64_t columns = 0;           // of the packed product
  double packed = 0, apart = 0;  // seconds
};

/// x [W_1 ... W_h] beside x W_1, ..., x W_h.
Packing pack(int tokens, int d_model, int heads, int d_key, uint64_t seed, bool transposed_weight) {
  Random random(seed, 41);
  const Tensor x = in_float(random_matrix(tokens, d_model, random));
  std::vector<Parameter> weights(static_cast<size_t>(heads)), turned(weights.size());
  std::vector<const Parameter*> all;
  std::vector<Affine> one;
  double most = 0;
  for (size_t h = 0; h < weights.size(); ++h) {
    const Matrix w = random_matrix(d_model, d_key, random);
    weights[h] = Parameter(d_model, d_key);
    weights[h].value = in_float(w);
    most = std::max(most, largest(in_double(weights[h].value.view())));
    all.push_back(&weights[h]);
    if (transposed_weight) turned[h].value = in_float(transposed(w));
    const Parameter* separate = transposed_weight ? &turned[h] : &weights[h];
    one.emplace_back(std::vector{separate}, std::vector<const Parameter*>{});
  }
  Affine together(all, {});
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
    if (repeat > 0) continue;
    std::vector<Matrix> separate;
    for (const Var& part : parts) separate.push_back(in_double(part.value()));
    result.columns = y.cols();
    result.ulps = largest_difference(in_double(y.value()), beside(separate)) / unit;
  }
  result.packed = median(packed);
  result.apart = median(apart);
  return result;
}

/// mistake 1: the separate matrices are transposed; 2: d_k = d/h.
Claim packed_product(const AlgebraCase& a) {
  Claim claim = claim_without_figures("004.1");
  auto& rows = claim.tables[0].rows;
  double worst = 0;
  int64_t askers = 0;
  for (const auto& [t, d, h] : {std::array{10, 8, 8}, std::array{29, 128, 4}, std::array{64, 512, 8}}) {
    const bool asked = d == 8;
    // A matrix must be square to be mistaken for its transpose.
    const int key = a.mistake == 1 ? d : asked && a.mistake != 2 ? d : d / h;
    const Packing p = pack(t, d, h, key, a.seed, a.mistake == 1);
    worst = std::max(worst, p.ulps);
    if (asked) askers = p.columns;
    rows.push_back({fmt::format("{}, {}, {}, {}", t, d, h, key), p.ulps == 0 ? "yes" : "no",
                    fmt::format("{:.2g}", p.ulps), fmt::format("{:.1f}", 1e6 * p.packed),
                    fmt::format("{:.1f}", 1e6 * p.apart), fmt::format("{:.1f}", p.apart / p.packed)});
  }
  decide(claim, worst <= 2, fmt::format("{:.2g} ulp{}", worst, worst == 0 ? ", bit for bit the same" : ""));
  decide(claim, askers == 64, fmt::format("{} columns", askers));
  measure(claim, fmt::format("separate products take {}, {} and {} times as long in the three shapes",
                             rows[0][5], rows[1][5], rows[2][5]));
  return claim;
}

constexpr HeadSizes kSizes{.heads = 3, .d_model = 12, .d_key = 4, .d_value = 4};

/// h heads, and one head with the same matrices side by side.
struct Stacked {
  std::vector<Head> heads;
  Head one;
  Matrix x;
  double scale = 1 / std::sqrt(kSizes.d_key);           // of a head
  double single_scale = 1 / std::sqrt(kSizes.d_model);  // of the single head, whose d_k is d
  Matrix own_weights(const Head& head) const { return weights(x, head, scale); }
  Matrix single_weights() const { return weights(x, one, single_scale); }
};
Stacked stacked(uint64_t seed) {
  Random random(seed, 42);
  Stacked s{.heads = random_heads(kSizes, random), .one = {}, .x = {}};
  std::vector<Matrix> q, k, v, o;
  for (const Head& head : s.heads) {
    q.push_back(head.q), k.push_back(head.k), v.push_back(head.v), o.push_back(transposed(head.o));
  }
  s.one = {beside(q), beside(k), beside(v), transposed(beside(o))};
  s.x = random_matrix(8, kSizes.d_model, random);
  return s;
}

/// The heads' weights multiplied, each to this power, with rows that sum to 1.
Matrix multiplied_weights(const Stacked& s, double power) {
  Matrix logs(s.x.rows(), s.x.rows());
  for (const Head& head : s.heads) {
    Matrix w = s.own_weights(head);
    for (int64_t i = 0; i < w.size(); ++i) w.data()[i] = std::log(w.data()[i]);
    logs = sum(logs, w, power);
  }
  return softmax_rows(std::move(logs));
}

/// mistake 1: a head is left out of the sum; 2: the single head's own weights are among the heads'; 3: the power
/// is 1.
Claim scores_add_up(const AlgebraCase& a) {
  Claim claim = claim_without_figures("004.2");
  const Stacked s = stacked(a.seed);
  const Matrix whole = scores(s.x, s.one), single = s.single_weights();
  Matrix total(s.x.rows(), s.x.rows());
  double nearest = 1;
  for (size_t h = 0; h < s.heads.size(); ++h) {
    if (a.mistake != 1 || h > 0) total = sum(total, scores(s.x, s.heads[h]));
    const Matrix own = a.mistake == 2 && h == 0 ? single : s.own_weights(s.heads[h]);
    nearest = std::min(nearest, largest_difference(own, single));
  }
  const double difference = relative_difference(total, whole);
  decide(claim, difference <= 1e-12, fmt::format("largest difference {:.1e}", difference));
  decide(claim, nearest > 0.05, fmt::format("the nearest head differs by {:.2f}", nearest));
  const double power = a.mistake == 3 ? 1 : 1 / std::sqrt(kSizes.heads);
  const double multiplied = largest_difference(multiplied_weights(s, power), single);
  decide(claim, multiplied <= 1e-12, fmt::format("largest difference {:.1e}", multiplied));
  return claim;
}

/// mistake 1: the heads, too, take the single head's weights; 2: the first head's weights instead of the
/// single head's.
Claim outputs_differ(const AlgebraCase& a) {
  Claim claim = claim_without_figures("004.3");
  const Stacked s = stacked(a.seed);
  const Matrix of_one = s.single_weights();
  const Matrix single = product(product(of_one, product(s.x, s.one.v)), s.one.o);
  const auto with = [&](const std::function<Matrix(const Head&)>& weights_of) {
    Matrix y(single.rows(), single.cols());
    for (const Head& head : s.heads)
      y = sum(y, product(product(weights_of(head), product(s.x, head.v)), head.o));
    return y;
  };
  const Matrix many = with([&](const Head& head) { return a.mistake == 1 ? of_one : s.own_weights(head); });
  const double distance = norm(sum(many, single, -1)) / norm(many);
  decide(claim, distance > 0.05, fmt::format("{:.2f} of the norm apart", distance));
  const Matrix shared =
      with([&](const Head&) { return a.mistake == 2 ? s.own_weights(s.heads[0]) : of_one; });
  const double left = relative_difference(shared, single);
  decide(claim, left <= 1e-12, fmt::format("largest difference {:.1e}", left));
  return claim;
}

/// mistake 1: the block is looked at after W^O; 2: it is looked at in the columns of the next head.
Claim blocks(const AlgebraCase& a) {
  constexpr int kModel = 12, kHeads = 3, kSize = 4;
  Claim claim = claim_without_figures("004.4");
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
  decide(claim, others_most == 0, fmt::format("largest {}", others_most));
  decide(claim, own_least > 1e-6, fmt::format("the largest of each is at least {:.2g}", own_least));
  return claim;
}

/// mistake 1: the heads are put together in the wrong order; 2: the weights are transposed before they meet the
/// values; 3: head 0's weights are read for each head; 4: d_k = d/h; 5: the same 64 columns are one head.
Claim walk(const AlgebraCase& a) {
  constexpr int kTokens = 10, kModel = 8, kHeads = 8;  // the asker's shape
  const int key = a.mistake == 4 ? kModel / kHeads : kModel;
  Claim claim = claim_without_figures("004.6");
  Random random(a.seed, 46);
  const Matrix x = random_matrix(kTokens, kModel, random);
  const Tensor rows = in_float(x);
  Layer layer({.heads = kHeads, .d_key = key, .biases = Biases::kNone}, kModel, a.seed);
  Layer one_head({.heads = 1, .d_key = kHeads * key, .biases = Biases::kNone}, kModel, a.seed);
  const auto traced = [&](Layer& of) {
    return trace_attention(of.attention(), rows.view(), {}, Mask::none());
  };
  const AttentionTrace trace = traced(layer);
  for (const TraceStep& step : trace.steps) {
    if (step.owner.starts_with("head ") && step.owner != "head 0") continue;
    claim.tables[0].rows.push_back(
        {step.name, fmt::format("[{}, {}]", step.value.rows(), step.value.cols()), step.formula, step.owner});
  }
  const auto step = [&](const char* name, int h) {
    return in_double(trace.step(fmt::format("{}_{}", name, h)).value.view());
  };
  std::vector<Matrix> outputs, queries, weights;
  double worst = 0, nearest = 1;
  for (int h = 0; h < kHeads; ++h) {
    const Matrix w = step("weights", h), output = step("z", h);
    const Matrix own = product(a.mistake == 2 ? transposed(w) : w, step("v", h));
    worst = std::max(worst, relative_difference(own, output));
    const Matrix read = a.mistake == 3 ? step("weights", 0) : w;
    for (const Matrix& other : weights) nearest = std::min(nearest, largest_difference(read, other));
    weights.push_back(read);
    queries.push_back(step("q", h));
    outputs.push_back(output);
  }
  if (a.mistake == 1) std::reverse(outputs.begin(), outputs.end());
  const Matrix expected = layer.heads(x);
  const double difference = relative_difference(beside(outputs), expected);
  decide(claim, difference <= 1e-5, fmt::format("largest difference {:.1e}", difference));
  decide(claim, worst <= 1e-5, fmt::format("largest difference {:.1e}", worst));
  decide(claim, nearest > 0.001, fmt::format("the nearest two differ by {:.3f}", nearest));
  const Matrix q = beside(queries), w_o = in_double(trace.step("w_o").value.view());
  decide(claim, q.rows() == kTokens && q.cols() == 64 && w_o.rows() == 64 && w_o.cols() == kModel,
         fmt::format("Q is {} x {}, W^O {} x {}", q.rows(), q.cols(), w_o.rows(), w_o.cols()));
  const AttentionTrace walked = traced(a.mistake == 5 ? one_head : layer);
  const auto matrices = std::count_if(walked.steps.begin(), walked.steps.end(), [](const TraceStep& of) {
    return of.name.starts_with("weights_") && of.value.rows() == kTokens && of.value.cols() == kTokens;
  });
  decide(claim, matrices == kHeads, std::to_string(matrices));
  return claim;
}

}  // namespace

std::span<const AlgebraCheck> algebra() {
  static constexpr AlgebraCheck kChecks[] = {{"004.1", packed_product}, {"004.2", scores_add_up},
                                             {"004.3", outputs_differ}, {"004.4", blocks},
                                             {"004.5", memory},         {"004.6", walk}};
  return kChecks;
}

}  // namespace mh::one_product
