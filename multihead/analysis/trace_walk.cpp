// One layer computed head by head and op by op, as the formulas of its steps say.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "multihead/analysis/layer_parameters.h"
#include "multihead/analysis/position_bias.h"
#include "multihead/analysis/trace.h"
#include "multihead/autograd/differential.h"
#include "multihead/autograd/ops.h"
#include "multihead/base/error.h"
#include "multihead/nn/attention.h"
#include "multihead/nn/weighted_values.h"

namespace mh {
namespace {

/// "head 0", "heads 0, 1", "all heads".
std::string owner_of(const std::vector<int>& heads, int all) {
  if (heads.empty() || (all > 1 && static_cast<int>(heads.size()) == all)) return "all heads";
  return fmt::format("{} {}", heads.size() == 1 ? "head" : "heads", fmt::join(heads, ", "));
}

/// The heads for which `belongs(head)`.
template <class Belongs>
std::vector<int> heads_that(int heads, const Belongs& belongs) {
  std::vector<int> all;
  for (int h = 0; h < heads; ++h) {
    if (belongs(h)) all.push_back(h);
  }
  return all;
}

class Walk {
 public:
  Walk(MultiHeadAttention& layer, ConstMatrixView x, ConstMatrixView memory, const Mask& mask)
      : layer_(layer),
        g_(layer.geometry()),
        parameters_(layer, static_cast<int>(x.cols)),
        own_rows_(memory.rows == 0),
        maps_(maps_per_head(g_)),
        scale_(g_.query_key_norm == QueryKeyNorm::kL2 ? 1 : *g_.scale),  // then queries have their factor
        x_(copied(x)),
        memory_(copied(own_rows_ ? x : memory)),
        mask_(mask) {
    trace_.attention = layer.name();
    trace_.geometry = g_;
    if (x_.cols() != memory_.cols()) {
      throw ShapeError(
          fmt::format("the rows of queries are [{},{}], those of the memory [{},{}]; give both the "
                      "same width",
                      x_.rows(), x_.cols(), memory_.rows(), memory_.cols()));
    }
  }

  AttentionTrace run() {
    Context context{.tape = tape_};
    const Ragged queries = Ragged::from_lengths(std::vector<int32_t>{static_cast<int32_t>(x_.rows())});
    const Ragged keys = Ragged::from_lengths(std::vector<int32_t>{static_cast<int32_t>(memory_.rows())});
    const Sequences rows{.ids = {}, .ragged = &queries, .sentences = {}};
    const Var x = tape_.constant(x_.view()), memory = tape_.constant(memory_.view());
    const Var q = layer_.project_queries(context, x);
    const KeysAndValues kv = layer_.project_memory(context, memory, keys.offsets());
    plain_ = met_ = {q, kv.keys, kv.values};
    turned_ = own_rows_ && layer_.config().positions == Positions::kRotary;
    if (turned_) met_ = layer_.project(context, x, {.offsets = queries.offsets()});
    const Var fused =
        own_rows_ ? layer_.self(context, x, rows, mask_) : layer_.attend(context, q, rows, kv, mask_);

    d_key_ = q.cols() / (int64_t{g_.heads} * maps_);
    key_groups_ = kv.keys.cols() / (d_key_ * maps_);
    value_heads_ = kv.values.cols() / g_.d_value;
    add("x", own_rows_ ? "the rows that come in" : "the rows that ask", {}, x_, kQueries);
    if (!own_rows_) add("memory", "the rows that are read", {}, memory_, kKeys);
    for (const auto& p : parameters_.all()) {
      if (!parameters_.block(p, 0) && !p.after_heads()) add(p.name, "learned", {}, *p.value);
    }
    Tensor together = heads();
    compare(together, fused.value());
    output(std::move(together));
    return std::move(trace_);
  }

 private:
  static constexpr auto kNumbers = TraceAxis::kNumbers, kQueries = TraceAxis::kQueries,
                        kKeys = TraceAxis::kKeys;

  /// A matrix [Tq, Tk] and what the steps call it.
  struct Map {
    std::string name;
    Var value;
  };

  void add(std::string name, std::string formula, const std::vector<int>& owners, Tensor value,
           TraceAxis rows = kNumbers, TraceAxis columns = kNumbers) {
    trace_.steps.push_back(
        {std::move(name), std::move(formula), owner_of(owners, g_.heads), std::move(value), rows, columns});
  }
  Map add_map(std::string name, std::string formula, int head, Var value) {
    add(name, std::move(formula), {head}, copied(value.value()), kQueries, kKeys);
    return {std::move(name), value};
  }

  /// "_0" of head 0; "_0_2" of the second softmax of a differential head.
  std::string suffix(int head, int64_t softmax) const {
    return maps_ == 1 ? fmt::format("_{}", head) : fmt::format("_{}_{}", head, softmax + 1);
  }
  std::string rows_name() const { return own_rows_ ? "x" : "memory"; }

  Tensor heads() {
    const bool talks = g_.weights == HeadWeights::kTalking;
    std::vector<Map> maps;  // talking: of all heads
    Tensor together(x_.rows(), int64_t{g_.heads} * g_.d_value);
    for (int h = 0; h < g_.heads; ++h) {
      parameters_of(h);
      rows_of(h);
      std::vector<Softmax> own;
      for (int s = 0; s < maps_; ++s) {
        own.push_back(scores_of(h, s));
        if (!talks)
          own.back().weights =
              weights_of("weights" + suffix(h, s), h, own.back().scores, own.back().formula.weights);
      }
      if (talks) {
        maps.push_back(own[0].scores);
      } else if (maps_ == 1) {
        average(h, own[0].weights, own[0].formula.output, together);
      } else {
        const Map weights = difference(h, own[0].weights, own[1].weights);
        average(h, weights, matmul(tape_, weights.value, values_of(h)), together);
      }
    }
    if (talks) {
      maps = mixed(maps, "mixing_of_scores", "mixed");
      for (int h = 0; h < g_.heads; ++h) {
        Map& map = maps[static_cast<size_t>(h)];
        map = weights_of(fmt::format("softmax_{}", h), h, map, masked_softmax(tape_, map.value, mask_));
      }
      maps = mixed(maps, "mixing_of_weights", "weights");
      for (int h = 0; h < g_.heads; ++h) {
        const Map& weights = maps[static_cast<size_t>(h)];
        average(h, weights, matmul(tape_, weights.value, values_of(h)), together);
      }
    }
    return together;
  }

  void parameters_of(int head) {
    for (const auto& p : parameters_.all()) {
      const std::optional<Block> own = parameters_.block(p, head);
      if (!own || p.after_heads()) continue;
      const std::vector<int> owners =
          heads_that(g_.heads, [&](int h) { return *parameters_.block(p, h) == *own; });
      if (owners.front() != head) continue;
      const bool rows = own->row_end - own->row_begin < p.value->rows();
      const int64_t begin = rows ? own->row_begin : own->col_begin, end = rows ? own->row_end : own->col_end;
      add(fmt::format("{}_{}", p.name, head),
          fmt::format("learned: {} {} ... {} of {}", rows ? "rows" : "columns", begin, end - 1, p.name),
          owners, copied(own->of(p.value->view())));
    }
  }

  int64_t value_head(int head) const { return head * value_heads_ / g_.heads; }
  /// Which of all keys softmax s of a head meets. Where heads of differential weights share keys, the two
  /// softmaxes of one head may meet the same.
  int64_t key_head(int head, int64_t s) const { return (head * maps_ + s) * key_groups_ / g_.heads; }
  /// The first head that reads what belongs to the group.
  int first_of(int64_t group, int64_t groups) const {
    return static_cast<int>((group * g_.heads + groups - 1) / groups);
  }
  std::string key_name(int64_t key) const {
    return "k" + suffix(first_of(key / maps_, key_groups_), key % maps_);
  }
  /// "[:, 0 ... 3]" of the numbers of one of two softmaxes.
  std::string part(int64_t softmax) const {
    return maps_ == 1 ? "" : fmt::format("[:, {} ... {}]", softmax * d_key_, (softmax + 1) * d_key_ - 1);
  }
  static std::string met(const std::string& name, bool turned) { return turned ? name + "_turned" : name; }

  /// Columns of what was projected, and, if they differ, as they meet.
  void add_rows(const std::string& name, const std::string& formula, const std::vector<int>& owners,
                Var plain, Var met_rows, int64_t begin, int64_t width, TraceAxis axis) {
    add(name, formula, owners, copied(plain.value().columns_between(begin, begin + width)), axis);
    if (!turned_ || axis == kNumbers) return;
    add(met(name, true), name + ", pairs of numbers turned by the row's place", owners,
        copied(met_rows.value().columns_between(begin, begin + width)), axis);
  }

  void rows_of(int h) {
    for (int64_t s = 0; s < maps_; ++s) {
      add_rows("q" + suffix(h, s), parameters_.projection("x", 'q', h, part(s)), {h}, plain_.q, met_.q,
               (h * maps_ + s) * d_key_, d_key_, kQueries);
    }
    for (int64_t s = 0; s < maps_; ++s) {
      const int64_t key = key_head(h, s);
      const auto reads = [&](int head, int64_t last) {
        for (int64_t other = 0; other < last; ++other) {
          if (key_head(head, other) == key) return true;
        }
        return false;
      };
      const std::vector<int> owners = heads_that(g_.heads, [&](int head) { return reads(head, maps_); });
      if (owners.front() != h || reads(h, s)) continue;
      add_rows(
          key_name(key),
          parameters_.projection(rows_name(), 'k', first_of(key / maps_, key_groups_), part(key % maps_)),
          owners, plain_.k, met_.k, key * d_key_, d_key_, kKeys);
    }
    const int64_t value = value_head(h);
    if (first_of(value, value_heads_) == h) {
      add(fmt::format("v_{}", h), parameters_.projection(rows_name(), 'v', h),
          heads_that(g_.heads, [&](int head) { return value_head(head) == value; }),
          copied(plain_.v.value().columns_between(value * g_.d_value, (value + 1) * g_.d_value)), kKeys);
    }
  }

  struct Softmax {
    Map scores;  // scaled, with what positions add
    AttentionResult<float> formula;
    Map weights = {};
  };
  Softmax scores_of(int h, int s) {
    const std::string own = suffix(h, s);
    const int64_t query = h * maps_ + s, key = key_head(h, s);
    const Var q = tape_.columns(met_.q, query * d_key_, (query + 1) * d_key_);
    const Var k = tape_.columns(met_.k, key * d_key_, (key + 1) * d_key_);
    auto bias = position_bias(
        layer_, parameters_,
        {.head = h, .softmax = query, .name = "q" + own, .rows = q.value(), .scale = scale_}, memory_.rows());
    const auto added = bias ? std::optional(tape_.constant(bias->value.view())) : std::nullopt;
    const AttentionResult<float> formula = attention_formula(tape_, q, k, values_of(h), scale_, mask_, added);
    add_map("scores" + own, fmt::format("{} {}^T", met("q" + own, turned_), met(key_name(key), turned_)), h,
            formula.scores);
    Map last = add_map("scaled" + own, fmt::format("{:.4g} scores{}", scale_, own), h, formula.scaled);
    if (added) {
      add_map("bias" + own, bias->formula, h, *added);
      last = add_map("biased" + own, fmt::format("scaled{} + bias{}", own, own), h, formula.biased);
    }
    return {std::move(last), formula};
  }
  Var values_of(int head) {
    const int64_t value = value_head(head);
    return tape_.columns(plain_.v, value * g_.d_value, (value + 1) * g_.d_value);
  }

  /// weights: the softmax of the scores.
  Map weights_of(std::string name, int h, const Map& scores, Var weights) {
    std::string last = scores.name;
    if (mask_.kind() != Mask::Kind::kNone) {
      last = "masked" + name.substr(name.find('_'));
      add(last, fmt::format("{}, -infinity where the mask hides the key", scores.name), {h},
          masked(scores.value.value()), kQueries, kKeys);
    }
    return add_map(std::move(name), "softmax of the rows of " + last, h, weights);
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
        sum = mh::add(tape_, sum, scale(tape_, maps[static_cast<size_t>(from)].value, by(from, h)));
      all.push_back(add_map(fmt::format("{}_{}", name, h),
                            fmt::format("sum over g of {}[g, {}] {}_g", mixing, h, each), h, sum));
    }
    return all;
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
      add("factor", fmt::format("exp(lambda[0] . lambda[1]) - exp(lambda[2] . lambda[3]) + {:.4g}", start()),
          {}, std::move(shown));
    }
    return add_map(fmt::format("weights_{}", h), fmt::format("{} - factor {}", first.name, second.name), h,
                   mh::add(tape_, first.value, scale(tape_, second.value, -factor_)));
  }
  float start() const { return lambda_init(layer_.config().layer); }

  /// Adds the head's output, weights times values, and puts it in its columns of `together`.
  void average(int h, const Map& weights, Var output, Tensor& together) {
    Tensor z = copied(output.value());
    const std::string formula = fmt::format("{} v_{}", weights.name, first_of(value_head(h), value_heads_));
    if (maps_ == 1) {
      add(fmt::format("z_{}", h), formula, {h}, z, kQueries);
    } else {
      add(fmt::format("average_{}", h), formula, {h}, z, kQueries);
      const Tensor& gain = *parameters_.find("head_norm");
      for (int64_t i = 0; i < z.rows(); ++i) {
        double squares = kDifferentialEpsilon * static_cast<double>(z.cols());
        for (int64_t c = 0; c < z.cols(); ++c) squares += double{z(i, c)} * z(i, c);
        const double by = (1 - start()) / std::sqrt(squares / static_cast<double>(z.cols()));
        for (int64_t c = 0; c < z.cols(); ++c) z(i, c) *= static_cast<float>(by) * gain(0, c);
      }
      add(fmt::format("z_{}", h),
          fmt::format("{:.4g} head_norm * average_{} / its root mean square", 1 - start(), h), {h}, z,
          kQueries);
    }
    for (int64_t i = 0; i < z.rows(); ++i)
      std::copy_n(z.view().row(i), g_.d_value, together.view().row(i) + h * g_.d_value);
  }

  void compare(const Tensor& together, ConstMatrixView layer) {
    for (int64_t i = 0; i < layer.rows; ++i) {
      for (int64_t j = 0; j < layer.cols; ++j) {
        trace_.difference =
            std::max(trace_.difference, static_cast<double>(std::abs(together(i, j) - layer(i, j))));
        trace_.magnitude = std::max(trace_.magnitude, static_cast<double>(std::abs(layer(i, j))));
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
    add("z", fmt::format("[{}], side by side", fmt::join(names, " | ")), {}, together, kQueries);
    if (layer_.output() == nullptr) {
      add("output", "z", {}, together, kQueries);
      return;
    }
    for (const auto& p : parameters_.all()) {
      if (!p.after_heads()) continue;
      const int64_t rows = p.value->rows() / g_.heads;
      add(p.name,
          p.name == "w_o" ? fmt::format("learned: {} rows meet each head's z in turn", rows) : "learned", {},
          *p.value);
    }
    const Var y = affine(tape_, tape_.constant(together.view()), *layer_.output());
    add("output", parameters_.find("b_o") != nullptr ? "z w_o + b_o" : "z w_o", {}, copied(y.value()),
        kQueries);
  }

  MultiHeadAttention& layer_;
  const HeadGeometry& g_;
  LayerParameters parameters_;
  bool own_rows_, turned_ = false;
  int maps_;  // softmaxes of a head
  float scale_;
  Tensor x_, memory_;
  Mask mask_;
  Tape tape_;
  Heads::Projected plain_, met_;  // as projected; as queries meet keys
  int64_t d_key_ = 0, key_groups_ = 0, value_heads_ = 0;
  float factor_ = 0;  // lambda of differential weights
  AttentionTrace trace_;
};

}  // namespace

AttentionTrace trace_attention(MultiHeadAttention& layer, ConstMatrixView x, ConstMatrixView memory,
                               const Mask& mask) {
  return Walk(layer, x, memory, mask).run();
}

}  // namespace mh
