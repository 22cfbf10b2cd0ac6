// Computes one layer head by head and op by op, exactly as the formulas of its steps say.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "multihead/autograd/ops.h"
#include "multihead/base/error.h"
#include "multihead/base/finite.h"
#include "multihead/heads/reports/trace/head_rows.h"
#include "multihead/heads/reports/trace/layer_parameters.h"
#include "multihead/heads/reports/trace/position_bias.h"
#include "multihead/heads/reports/trace/trace.h"
#include "multihead/heads/reports/trace/trace_recorder.h"
#include "multihead/nn/attention.h"
#include "multihead/nn/query_key_scheme.h"
#include "multihead/nn/weight_scheme.h"

namespace mh {
namespace {

class Walk final : WeighingTrace {
 public:
  Walk(const MultiHeadAttention& layer, ConstMatrixView x, ConstMatrixView memory, const Mask& mask)
      : layer_(layer),
        g_(layer.geometry()),
        parameters_(layer, static_cast<int>(x.cols)),
        recorder_(layer),
        own_rows_(memory.rows == 0),
        scale_(query_key_scheme_of(g_).takes_scale() ? 1 : *g_.scale),  // then queries have their factor
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

  /// What the layer itself makes of the rows.
  Var fused(Context& context, Var x, Var memory) {
    const auto one = [](int64_t rows) {
      return Ragged::from_lengths(std::vector<int32_t>{static_cast<int32_t>(rows)});
    };
    const Ragged queries = one(x.rows()), keys = one(memory.rows());
    const Sequences rows{.ids = {}, .ragged = &queries, .sentences = {}};
    if (own_rows_) return layer_.self_heads(context, x, rows, mask_);
    const KeysAndValues both = layer_.project_memory(context, memory, keys.offsets());
    const RowPlaces places{.offsets = queries.offsets()};
    return layer_.attend(context, layer_.project_queries(context, x, places), rows, both, mask_, places);
  }

  Tensor heads(HeadRows& rows) {
    rows_ = &rows;
    const WeightScheme& scheme = weight_scheme_of(g_);
    std::vector<TracedMap> of_all;  // where heads mix each other's
    together_ = Tensor(x_.rows(), int64_t{g_.heads} * g_.d_value);
    for (int h = 0; h < g_.heads; ++h) {
      rows.show(h, recorder_);
      std::vector<TracedMap> own;
      for (int s = 0; s < rows.softmaxes(); ++s) {
        TracedMap scores = scores_of(h, s);
        own.push_back(scheme.mixes_heads() ? std::move(scores)
                                           : add_softmax("weights" + rows.suffix(h, s), h, scores));
      }
      if (scheme.mixes_heads()) {
        of_all.push_back(std::move(own[0]));
      } else {
        scheme.trace_head(*this, h, own);
      }
    }
    if (scheme.mixes_heads()) scheme.trace_all(*this, std::move(of_all));
    return std::move(together_);
  }

  /// Scaled, with what positions add.
  TracedMap scores_of(int h, int s) {
    const std::string own = rows_->suffix(h, s), q_name = rows_->name_of_queries(h, s);
    const Var q = rows_->queries(h, s), k = rows_->keys(h, s);
    auto bias = position_bias(layer_, parameters_,
                              {.head = h,
                               .softmax = rows_->number(h, s),
                               .name = q_name,
                               .rows = q.value(),
                               .name_of_keys = rows_->name_of_keys(h, s),
                               .keys = k.value(),
                               .scale = scale_});
    const auto added = bias ? std::optional(tape_.constant(bias->value.view())) : std::nullopt;
    const AttentionResult<float> formula =
        attention_formula(tape_, q, k, rows_->values(h), scale_, mask_, added, g_.soft_cap);
    recorder_.add_map("scores" + own, fmt::format("{} {}^T", q_name, rows_->name_of_keys(h, s)), h,
                      formula.scores);
    TracedMap last =
        recorder_.add_map("scaled" + own, fmt::format("{:.4g} scores{}", scale_, own), h, formula.scaled);
    if (g_.soft_cap) {
      last = recorder_.add_map("capped" + own,
                               fmt::format("{0:.4g} tanh(scaled{1} / {0:.4g})", *g_.soft_cap, own), h,
                               formula.capped);
    }
    if (!added) return last;
    recorder_.add_map("bias" + own, bias->formula, h, *added);
    return recorder_.add_map("biased" + own, fmt::format("{} + bias{}", last.name, own), h, formula.biased);
  }

  const HeadGeometry& geometry() const override { return g_; }
  int layer() const override { return layer_.config().layer; }
  Tape& tape() override { return tape_; }
  const Tensor& parameter(std::string_view name) const override { return *parameters_.find(name); }
  Var values(int head) override { return rows_->values(head); }
  std::string name_of_values(int head) const override { return rows_->name_of_values(head); }

  TracedMap add_map(std::string name, std::string formula, int head, Var value) override {
    return recorder_.add_map(std::move(name), std::move(formula), head, value);
  }
  TracedMap add_softmax(std::string name, int h, const TracedMap& scores) override {
    std::string last = scores.name;
    if (mask_.kind() != Mask::Kind::kNone) {
      last = "masked" + name.substr(name.find('_'));
      recorder_.add_masked(last, fmt::format("{}, -infinity where the mask hides the key", scores.name), h,
                           masked(scores.value.value()));
    }
    return recorder_.add_map(std::move(name), "softmax of the rows of " + last, h,
                             ops::masked_softmax(tape_, scores.value, mask_));
  }
  void add_number(std::string name, std::string formula, float value) override {
    Tensor shown(1, 1);
    shown(0, 0) = value;
    recorder_.add(std::move(name), std::move(formula), {}, std::move(shown));
  }
  void add_rows(std::string name, std::string formula, int head, Tensor value) override {
    recorder_.add(std::move(name), std::move(formula), {head}, std::move(value), kQueries);
  }
  /// Puts it in its columns of all heads' outputs, too.
  void add_output(int h, std::string formula, Tensor z) override {
    for (int64_t i = 0; i < z.rows(); ++i)
      std::copy_n(z.view().row(i), g_.d_value, together_.view().row(i) + h * g_.d_value);
    recorder_.add(fmt::format("z_{}", h), std::move(formula), {h}, std::move(z), kQueries);
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

  void compare(const Tensor& together, ConstMatrixView layer) {
    require_finite(layer, "heads' outputs");
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
  HeadRows* rows_ = nullptr;  // while heads() runs
  Tensor together_;           // the heads' outputs side by side
};

}  // namespace

AttentionTrace trace_attention(const MultiHeadAttention& layer, ConstMatrixView x, ConstMatrixView memory,
                               const Mask& mask) {
  return Walk(layer, x, memory, mask).run();
}

}  // namespace mh
