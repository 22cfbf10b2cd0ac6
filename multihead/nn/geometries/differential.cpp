// (A_1 - lambda A_2) V: the weights of a head are the difference of two softmaxes, which takes noise out of
// both (Ye et al. 2024). The fused kernel runs 2 h heads, of which two neighbours share their values; the
// difference of their outputs is the output of the head. Then each head has a norm of its own, times 1 -
// lambda_init, with lambda_init = 0.8 - 0.6 exp(-0.3 l) in layer l = 0, 1, ...
//
// Cost: 2 h and 2 g for h and g in queries, keys, scores, softmax and average; in average besides 4 k + v
// parameters, Tq h (6 v + 4) other operations for difference and norm, and lambda's 2 k multiply-adds, 2
// others and 2 exponentials.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "multihead/autograd/differential.h"
#include "multihead/autograd/ops.h"
#include "multihead/autograd/replace.h"
#include "multihead/nn/initialise.h"
#include "multihead/nn/weight_scheme.h"

namespace mh {
namespace {

float lambda_init(int layer) {
  return static_cast<float>(0.8 - 0.6 * std::exp(-0.3 * layer));
}

class DifferentialValues final : public WeightedValues {
 public:
  DifferentialValues(const HeadGeometry& g, int layer)
      : heads_(g.heads), start_(lambda_init(layer)), lambda_(4, g.d_key), gain_(1, g.d_value) {}

  Var apply(const HeadsOf& whose, Var q, Var k, Var v, const AttentionInputs& inputs,
            const LearnedInputs& learned) const override {
    Tape& tape = whose.context.tape;
    const std::vector<ComposedHead> composed =
        composed_heads(whose, q, k, v, inputs, learned, 2,
                       [&](Var pairs) { return differential_maps(tape, pairs, inputs, parameters()); });
    if (!composed.empty()) refuse_dropout(whose, inputs, "differential");
    LearnedInputs of_pairs = learned;
    of_pairs.gates = {};  // before the norm a gate would be no gate
    Var both = attention(tape, q, k, v, inputs, of_pairs);
    for (const auto& [head, output] : composed) {  // output - lambda * 0
      const MatrixView zeros = tape.arena().matrix<float>(output.rows(), output.cols());
      std::fill_n(zeros.data, zeros.size(), 0.0f);
      const int64_t first = 2 * int64_t{head} * inputs.d_value;
      both = replace_columns(tape, both, first, output);
      both = replace_columns(tape, both, first + inputs.d_value, tape.constant(zeros));
    }
    const Var heads = differential_heads(tape, both, heads_, parameters());
    return gated(tape, heads, learned, inputs);
  }
  void initialise(Random& random) override {
    fill_normal(lambda_, random, 0.1);
    fill_with(gain_, 1);
  }
  void visit(const std::string& name, const ParameterVisitor& visitor) override {
    visitor(name + ".lambda", lambda_);
    visitor(name + ".head_norm", gain_);
  }

 private:
  DifferentialParameters parameters() const { return {.vectors = &lambda_, .gain = &gain_, .start = start_}; }

  int heads_;
  float start_;
  Parameter lambda_, gain_;
};

class DifferentialScheme final : public WeightScheme {
 public:
  int softmaxes() const override { return 2; }
  void find_problems(const HeadGeometry&, const HeadScheme& heads,
                     std::vector<std::string>& found) const override {
    if (heads.several_softmaxes()) return;
    found.push_back(
        "differential weights need two queries and two keys a head, of the whole row; set input to whole_row "
        "and scores to query_key");
  }
  std::vector<GeometryPreset> presets() const override {
    return {
        {{"differential", "weights are the difference of two softmaxes (Ye et al. 2024)"}, [](int h, int d) {
           HeadGeometry g{.heads = h, .weights = HeadWeights::kDifferential};
           // Where 2 h does not divide d_model a key is half a number wider.
           if (d % (2 * h) != 0 && d % h == 0) {
             g.d_key = (d / h + 1) / 2;
             g.d_value = d / h;
           }
           return g;
         }}};
  }
  std::unique_ptr<WeightedValues> make(const HeadGeometry& g, int layer) const override {
    return std::make_unique<DifferentialValues>(g, layer);
  }
  const char* refusal(Change change) const override {
    if (change == Change::kOrder || change == Change::kSelection) return nullptr;
    return "differential heads have two queries and two keys each";
  }
  /// Of each pair of averages, and its norm: lambda times, minus, square, sum, gain and factor of each
  /// number; mean, epsilon, root and division.
  void add_to_average(LedgerPart& cost, const HeadGeometry& g, const WeighedRows& weighed) const override {
    const int64_t rows = count_product({weighed.queries, g.heads}),
                  numbers = count_product({rows, g.d_value});
    cost.parameters = count_sum(cost.parameters, count_sum(count_product({4, g.d_key}), g.d_value));
    cost.multiply_adds = count_sum(cost.multiply_adds, count_product({2, g.d_key}));
    cost.exponentials = count_sum(cost.exponentials, 2);
    cost.other_flops = count_sum(
        cost.other_flops, count_sum(count_sum(count_product({6, numbers}), count_product({4, rows})), 2));
    cost.add_moves(count_product({2, numbers}), numbers);
  }

  void trace_head(WeighingTrace& trace, int head, const std::vector<TracedMap>& weights) const override {
    const float start = lambda_init(trace.layer()), factor = lambda_of(trace.parameter("lambda"), start);
    if (head == 0) {
      trace.add_number("factor",
                       fmt::format("exp(lambda[0] . lambda[1]) - exp(lambda[2] . lambda[3]) + {:.4g}", start),
                       factor);
    }
    Tape& tape = trace.tape();
    const TracedMap difference = trace.add_map(
        fmt::format("weights_{}", head), fmt::format("{} - factor {}", weights[0].name, weights[1].name),
        head, ops::add(tape, weights[0].value, ops::scale(tape, weights[1].value, -factor)));
    const std::string name = fmt::format("average_{}", head);
    Tensor z = traced_average(trace, head, difference);
    trace.add_rows(name, fmt::format("{} {}", difference.name, trace.name_of_values(head)), head, z);
    norm(z, trace.parameter("head_norm"), start);
    trace.add_output(head, fmt::format("{:.4g} head_norm * {} / its root mean square", 1 - start, name),
                     std::move(z));
  }

 private:
  static float lambda_of(const Tensor& v, float start) {
    const auto exp_of_product = [&](int64_t a, int64_t b) {
      double product = 0;
      for (int64_t c = 0; c < v.cols(); ++c) product += double{v(a, c)} * v(b, c);
      return std::exp(product);
    };
    return static_cast<float>(exp_of_product(0, 1) - exp_of_product(2, 3)) + start;
  }
  static void norm(Tensor& z, const Tensor& gain, float start) {
    for (int64_t i = 0; i < z.rows(); ++i) {
      double squares = kDifferentialEpsilon * static_cast<double>(z.cols());
      for (int64_t c = 0; c < z.cols(); ++c) squares += double{z(i, c)} * z(i, c);
      const double by = (1 - start) / std::sqrt(squares / static_cast<double>(z.cols()));
      for (int64_t c = 0; c < z.cols(); ++c) z(i, c) *= static_cast<float>(by) * gain(0, c);
    }
  }
};

}  // namespace

template <>
const WeightScheme& weight_scheme<HeadWeights::kDifferential>() {
  static const DifferentialScheme scheme;
  return scheme;
}

}  // namespace mh
