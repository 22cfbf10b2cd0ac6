// One layer computed head by head and op by op, as the formulas of its steps say.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "multihead/analysis/head_rows.h"
#include "multihead/analysis/layer_parameters.h"
#include "multihead/analysis/position_bias.h"
#include "multihead/analysis/trace.h"
#include "multihead/analysis/trace_recorder.h"
#include "multihead/autograd/differential.h"
#include "multihead/autograd/ops.h"
#include "multihead/base/error.h"
#include "multihead/nn/attention.h"
#include "multihead/nn/weighted_values.h"

namespace mh {
namespace {

class Walk {
 public:
  Walk(const MultiHeadAttention& layer, ConstMatrixView x, ConstMatrixView memory, const Mask& mask)
      : layer_(layer),
        g_(layer.geometry()),
        parameters_(layer, static_cast<int>(x.cols)),
        recorder_(layer),
        own_rows_(memory.rows == 0),
        scale_(g_.query_key_norm == QueryKeyNorm::kL2 ? 1 : *g_.scale),  // then queries have their factor
        x_(copied(x)),
        memory_(copied(own_rows_ ? x : memory)),
        mask_(mask) {
    if (x_.cols() != memory_.cols()) {
      throw ShapeError(
          fmt::format("the rows of queries are [{},{}], those of the memory [{},{}]; give both the "
                      "same width",
                      x_.rows(), x_.cols(), memory_.rows(), memory_.cols()));
    }
  }

  AttentionTrace run() {
    Context context{.tape = tape_};
    const Var x = tape_.constant(x_.view()), memory = tape_.constant(memory_.view());
    HeadRows rows = own_rows_ ? HeadRows(layer_, parameters_, context, x)
                              : HeadRows(layer_, parameters_, context, x, memory);
    recorder_.add("x", own_rows_ ? "the rows that come in" : "the rows that ask", {}, x_, kQueries);
    if (!own_rows_) recorder_.add("memory", "the rows that are read", {}, memory_, kKeys);
    for (const auto& p : parameters_.all()) {
      if (!parameters_.block(p, 0) && !p.after_heads()) recorder_.add(p.name, "learned", {}, *p.value);
    }
    Tensor together = heads(rows);
    compare(together, fused(context, x, memory).value());
    output(std::move(together));
    return std::move(recorder_.trace);
  }

 private:
  static constexpr auto kQueries = TraceAxis::kQueries, kKeys = TraceAxis::kKeys;
  using Map = TracedMap;

  /// What the layer itself makes of the rows.
  Var fused(Context& context, Var x, Var memory) {
    const auto one = [](int64_t rows) {
      return Ragged::from_lengths(std::vector<int32_t>{static_cast<int32_t>(rows)});
    };
    const Ragged queries = one(x.rows()), keys = one(memory.rows());
    const Sequences rows{.ids = {}, .ragged = &queries, .sentences = {}};
    if (own_rows_) return layer_.self_heads(context, x, rows, mask_);
    const KeysAndValues both = layer_.project_memory(context, memory, keys.offsets());
    return layer_.attend(context, layer_.project_queries(context, x), rows, both, mask_);
  }

  Tensor heads(HeadRows& rows) {
    const bool talks = g_.weights == HeadWeights::kTalking;
    std::vector<Map> maps;  // talking: of all heads
    Tensor together(x_.rows(), int64_t{g_.heads} * g_.d_value);
    for (int h = 0; h < g_.heads; ++h) {
      rows.show(h, recorder_);
      std::vector<Softmax> own;
      for (int s = 0; s < rows.softmaxes(); ++s) {
        own.push_back(scores_of(rows, h, s));
        if (talks) continue;
        own.back().weights =
            weights_of("weights" + rows.suffix(h, s), h, own.back().scores, own.back().formula.weights);
      }
      if (talks) {
        maps.push_back(own[0].scores);
      } else if (own.size() == 1) {
        place(h, fmt::format("{} {}", own[0].weights.name, rows.name_of_values(h)),
              copied(own[0].formula.output.value()), together);
      } else {
        place_difference(h, rows, difference(h, own[0].weights, own[1].weights), together);
      }
    }
    if (talks) talk(rows, std::move(maps), together);
    return together;
  }

  struct Softmax {
    Map scores;  // scaled, with what positions add
    AttentionResult<float> formula;
    Map weights = {};
  };
  Softmax scores_of(HeadRows& rows, int h, int s) {
    const std::string own = rows.suffix(h, s), q_name = rows.name_of_queries(h, s);
    const Var q = rows.queries(h, s);
    auto bias = position_bias(
        layer_, parameters_,
        {.head = h, .softmax = rows.number(h, s), .name = q_name, .rows = q.value(), .scale = scale_},
        memory_.rows());
    const auto added = bias ? std::optional(tape_.constant(bias->value.view())) : std::nullopt;
    const AttentionResult<float> formula =
        attention_formula(tape_, q, rows.keys(h, s), rows.values(h), scale_, mask_, added);
    recorder_.add_map("scores" + own, fmt::format("{} {}^T", q_name, rows.name_of_keys(h, s)), h,
                      formula.scores);
    Map last =
        recorder_.add_map("scaled" + own, fmt::format("{:.4g} scores{}", scale_, own), h, formula.scaled);
    if (added) {
      recorder_.add_map("bias" + own, bias->formula, h, *added);
      last = recorder_.add_map("biased" + own, fmt::format("scaled{} + bias{}", own, own), h, formula.biased);
    }
    return {std::move(last), formula};
  }

  /// weights: the softmax of the scores.
  Map weights_of(std::string name, int h, const Map& scores, Var weights) {
    std::string last = scores.name;
    if (mask_.kind() != Mask::Kind::kNone) {
      last = "masked" + name.substr(name.find('_'));
      recorder_.add(last, fmt::format("{}, -infinity where the mask hides the key", scores.name), {h},
                    masked(scores.value.value()), kQueries, kKeys);
    }
    return recorder_.add_map(std::move(name), "softmax of the rows of " + last, h, weights);
  }

  Tensor masked(ConstMatrixView scores) const {
    Tensor seen = copied(scores);
    for (int64_t i = 0; i < seen.rows(); ++i) {
      for (int64_t j = 0; j < seen.cols(); ++j) {
        if (!mask_.allows(i, i, j, seen.rows(), seen.cols()))
          seen(i, j) = -std::numeric_limits<float>::infinity();
      }
    }
    return seen;
  }

  /// Talking heads: map h of the result is the sum over g of mixing[g, h] times map g.
  std::vector<Map> mixed(const std::vector<Map>& maps, const std::string& mixing, const std::string& name) {
    const Tensor& by = *parameters_.find(mixing);
    const std::string each = maps[0].name.substr(0, maps[0].name.find('_'));
    std::vector<Map> all;
    for (int h = 0; h < g_.heads; ++h) {
      Var sum = scale(tape_, maps[0].value, by(0, h));
      for (int from = 1; from < g_.heads; ++from)
        sum = add(tape_, sum, scale(tape_, maps[static_cast<size_t>(from)].value, by(from, h)));
      all.push_back(recorder_.add_map(fmt::format("{}_{}", name, h),
                                      fmt::format("sum over g of {}[g, {}] {}_g", mixing, h, each), h, sum));
    }
    return all;
  }

  /// From the scores of all heads to their outputs.
  void talk(HeadRows& rows, std::vector<Map> maps, Tensor& together) {
    maps = mixed(maps, "mixing_of_scores", "mixed");
    for (int h = 0; h < g_.heads; ++h) {
      Map& map = maps[static_cast<size_t>(h)];
      map = weights_of(fmt::format("softmax_{}", h), h, map, masked_softmax(tape_, map.value, mask_));
    }
    maps = mixed(maps, "mixing_of_weights", "weights");
    for (int h = 0; h < g_.heads; ++h) {
      const Map& weights = maps[static_cast<size_t>(h)];
      place(h, fmt::format("{} {}", weights.name, rows.name_of_values(h)),
            copied(matmul(tape_, weights.value, rows.values(h)).value()), together);
    }
  }

  /// Differential weights: A_1 - lambda A_2.
  Map difference(int h, const Map& first, const Map& second) {
    const Tensor& v = *parameters_.find("lambda");
    if (h == 0) {
      const auto exp_of_product = [&](int64_t a, int64_t b) {
        double product = 0;
        for (int64_t c = 0; c < v.cols(); ++c) product += double{v(a, c)} * v(b, c);
        return std::exp(product);
      };
      factor_ = static_cast<float>(exp_of_product(0, 1) - exp_of_product(2, 3)) + start();
      Tensor shown(1, 1);
      shown(0, 0) = factor_;
      recorder_.add("factor",
                    fmt::format("exp(lambda[0] . lambda[1]) - exp(lambda[2] . lambda[3]) + {:.4g}", start()),
                    {}, std::move(shown));
    }
    return recorder_.add_map(fmt::format("weights_{}", h),
                             fmt::format("{} - factor {}", first.name, second.name), h,
                             add(tape_, first.value, scale(tape_, second.value, -factor_)));
  }
  float start() const { return lambda_init(layer_.config().layer); }

  /// Adds a head's output, and puts it in its columns of `together`.
  void place(int h, std::string formula, Tensor z, Tensor& together) {
    for (int64_t i = 0; i < z.rows(); ++i)
      std::copy_n(z.view().row(i), g_.d_value, together.view().row(i) + h * g_.d_value);
    recorder_.add(fmt::format("z_{}", h), std::move(formula), {h}, std::move(z), kQueries);
  }

  /// The output of a differential head has a norm of its own.
  void place_difference(int h, HeadRows& rows, const Map& weights, Tensor& together) {
    const std::string name = fmt::format("average_{}", h);
    Tensor z = copied(matmul(tape_, weights.value, rows.values(h)).value());
    recorder_.add(name, fmt::format("{} {}", weights.name, rows.name_of_values(h)), {h}, z, kQueries);
    const Tensor& gain = *parameters_.find("head_norm");
    for (int64_t i = 0; i < z.rows(); ++i) {
      double squares = kDifferentialEpsilon * static_cast<double>(z.cols());
      for (int64_t c = 0; c < z.cols(); ++c) squares += double{z(i, c)} * z(i, c);
      const double by = (1 - start()) / std::sqrt(squares / static_cast<double>(z.cols()));
      for (int64_t c = 0; c < z.cols(); ++c) z(i, c) *= static_cast<float>(by) * gain(0, c);
    }
    place(h, fmt::format("{:.4g} head_norm * {} / its root mean square", 1 - start(), name), std::move(z),
          together);
  }

  void compare(const Tensor& together, ConstMatrixView layer) {
    for (int64_t i = 0; i < layer.rows; ++i) {
      for (int64_t j = 0; j < layer.cols; ++j) {
        recorder_.trace.difference =
            std::max(recorder_.trace.difference, static_cast<double>(std::abs(together(i, j) - layer(i, j))));
        recorder_.trace.magnitude =
            std::max(recorder_.trace.magnitude, static_cast<double>(std::abs(layer(i, j))));
      }
    }
  }

  void output(Tensor together) {
    std::vector<std::string> names;
    constexpr int kNamed = 6;
    for (int h = 0; h < g_.heads; ++h) {
      if (g_.heads <= kNamed || h < 2 || h == g_.heads - 1) names.push_back(fmt::format("z_{}", h));
      if (g_.heads > kNamed && h == 2) names.push_back("...");
    }
    recorder_.add("z", fmt::format("[{}], side by side", fmt::join(names, " | ")), {}, together, kQueries);
    if (layer_.output() == nullptr) {
      recorder_.add("output", "z", {}, together, kQueries);
      return;
    }
    for (const auto& p : parameters_.all()) {
      if (!p.after_heads()) continue;
      const int64_t rows = p.value->rows() / g_.heads;
      recorder_.add(
          p.name,
          p.name == "w_o" ? fmt::format("learned: {} rows meet each head's z in turn", rows) : "learned", {},
          *p.value);
    }
    const Var y = affine(tape_, tape_.constant(together.view()), *layer_.output());
    recorder_.add("output", parameters_.find("b_o") != nullptr ? "z w_o + b_o" : "z w_o", {},
                  copied(y.value()), kQueries);
  }

  const MultiHeadAttention& layer_;
  const HeadGeometry& g_;
  LayerParameters parameters_;
  TraceRecorder recorder_;
  bool own_rows_;
  float scale_;
  Tensor x_, memory_;
  Mask mask_;
  Tape tape_;
  float factor_ = 0;  // lambda of differential weights
};

}  // namespace

AttentionTrace trace_attention(const MultiHeadAttention& layer, ConstMatrixView x, ConstMatrixView memory,
                               const Mask& mask) {
  return Walk(layer, x, memory, mask).run();
}

}  // namespace mh
