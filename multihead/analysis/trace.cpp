#include "multihead/analysis/trace.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "multihead/analysis/attention_name.h"
#include "multihead/base/error.h"
#include "multihead/nn/attention.h"
#include "multihead/nn/head_blocks.h"

namespace mh {
namespace {

Tensor copied(ConstMatrixView from) {
  Tensor to(from.rows, from.cols);
  for (int64_t i = 0; i < from.rows; ++i) std::copy_n(from.row(i), from.cols, to.view().row(i));
  return to;
}

/// The largest difference of two matrices of one shape, and the largest magnitude in the second.
struct Deviation {
  double difference = 0, magnitude = 0;
};
Deviation deviation_of(ConstMatrixView a, ConstMatrixView b) {
  Deviation most;
  for (int64_t i = 0; i < a.rows; ++i) {
    for (int64_t j = 0; j < a.cols; ++j) {
      most.difference = std::max(most.difference, static_cast<double>(std::abs(a(i, j) - b(i, j))));
      most.magnitude = std::max(most.magnitude, static_cast<double>(std::abs(b(i, j))));
    }
  }
  return most;
}

/// "head 0", "heads 0, 1", "all heads".
std::string owner_of(const std::vector<int>& heads, int all) {
  if (heads.empty() || (all > 1 && static_cast<int>(heads.size()) == all)) return "all heads";
  return fmt::format("{} {}", heads.size() == 1 ? "head" : "heads", fmt::join(heads, ", "));
}

/// The heads h whose `of(h)` is the given head's.
template <class Of>
std::vector<int> sharing(int heads, int head, const Of& of) {
  std::vector<int> same;
  for (int h = 0; h < heads; ++h) {
    if (of(h) == of(head)) same.push_back(h);
  }
  return same;
}

/// Watches one layer attend.
class Watch final : public Observer {
 public:
  explicit Watch(std::string_view name) : name_(name) {}
  bool wants_weights(std::string_view name) const override { return name == name_; }
  void weights(const ObservedWeights&) override {}
  void rows(std::string_view, ProjectedTo to, ConstMatrixView rows) override {
    (to == ProjectedTo::kQueries ? queries : memory) = copied(rows);
  }

  Tensor queries, memory;

 private:
  std::string_view name_;
};

class Walk {
 public:
  Walk(MultiHeadAttention& layer, ConstMatrixView x, ConstMatrixView memory, const Mask& mask)
      : layer_(layer),
        g_(layer.geometry()),
        d_model_(static_cast<int>(x.cols)),
        own_rows_(memory.rows == 0),
        x_(copied(x)),
        memory_(copied(own_rows_ ? x : memory)),
        mask_(mask) {
    trace_.attention = layer.name();
    trace_.geometry = g_;
    layer.visit("", [&](const std::string& name, Parameter& p) {
      parameters_.push_back({name.substr(1), &p.value});
    });
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
    // As they meet: rotary positions turn those of self-attention.
    Var met_q = q, met_k = kv.keys;
    if (own_rows_) {
      const Heads::Projected projected = layer_.project(context, x, {.offsets = queries.offsets()});
      if (differs(projected.q, q)) met_q = projected.q;
      if (differs(projected.k, kv.keys)) met_k = projected.k;
    }
    const Var fused =
        own_rows_ ? layer_.self(context, x, rows, mask_) : layer_.attend(context, q, rows, kv, mask_);

    add("x", own_rows_ ? "the rows that come in" : "the rows that ask", {}, x_, kQueries);
    if (!own_rows_) add("memory", "the rows that are read", {}, memory_, kKeys);
    shared_parameters();
    const Tensor together = heads(q, kv, met_q, met_k);
    compare(together, fused.value());
    output(together);
    return std::move(trace_);
  }

 private:
  struct Named {
    std::string name;
    const Tensor* value;
  };

  static constexpr auto kNumbers = TraceAxis::kNumbers, kQueries = TraceAxis::kQueries,
                        kKeys = TraceAxis::kKeys;

  void add(std::string name, std::string formula, const std::vector<int>& owners, Tensor value,
           TraceAxis rows = kNumbers, TraceAxis columns = kNumbers) {
    trace_.steps.push_back(
        {std::move(name), std::move(formula), owner_of(owners, g_.heads), std::move(value), rows, columns});
  }
  const Named* find(std::string_view name) const {
    for (const Named& p : parameters_) {
      if (p.name == name) return &p;
    }
    return nullptr;
  }
  std::optional<Block> block(const Named& p, int head) const {
    return head_block(g_, d_model_, p.name, p.value->rows(), p.value->cols(), head);
  }
  static bool after_heads(const Named& p) { return p.name == "w_o" || p.name == "b_o"; }
  std::string rows_name() const { return own_rows_ ? "x" : "memory"; }

  void shared_parameters() {
    for (const Named& p : parameters_) {
      if (!block(p, 0) && !after_heads(p)) add(p.name, "learned", {}, *p.value);
    }
  }

  void parameters_of(int head) {
    for (const Named& p : parameters_) {
      const std::optional<Block> own = block(p, head);
      if (!own || after_heads(p)) continue;
      const std::vector<int> owners = sharing(g_.heads, head, [&](int h) { return *block(p, h); });
      if (owners.front() != head) continue;
      const bool rows = own->row_end - own->row_begin < p.value->rows();
      const int64_t begin = rows ? own->row_begin : own->col_begin, end = rows ? own->row_end : own->col_end;
      add(fmt::format("{}_{}", p.name, head),
          fmt::format("learned: {} {} ... {} of {}", rows ? "rows" : "columns", begin, end - 1, p.name),
          owners, copied(own->of(p.value->view())));
    }
  }

  /// "x w_q_0 + b_q_0", as the geometry does it. `part`: the number of the head whose weights they are.
  std::string projection(const std::string& rows, char letter, int part) const {
    const std::string suffix = fmt::format("_{}", part);
    const auto named = [&](const std::string& name) {
      const Named* p = find(name);
      return p != nullptr && block(*p, part) ? name + suffix : name;
    };
    if (g_.scores == Scores::kMerged && letter != 'v') {
      if (letter == 'k') return rows;
      return rows + " " + named("w_qk") + (find("c_qk") != nullptr ? " + " + named("c_qk") : "");
    }
    if (g_.scores == Scores::kTied && letter == 'k') return projection(rows, 'q', part);
    std::string read = rows;
    if (const std::string before = fmt::format("w_before_{}", letter); find(before) != nullptr)
      read = fmt::format("{} {}", rows, before);
    if (g_.input.kind != HeadInput::Kind::kWholeRow) {
      const std::vector<int32_t> columns = columns_read(g_, d_model_)[static_cast<size_t>(part)];
      const bool run = columns.back() - columns.front() + 1 == static_cast<int32_t>(columns.size());
      read = fmt::format("{}[:, {}]", read == rows ? read : "(" + read + ")",
                         run ? fmt::format("{} ... {}", columns.front(), columns.back())
                             : fmt::format("{}", fmt::join(columns, " ")));
    }
    const std::string weight = fmt::format("w_{}", letter), bias = fmt::format("b_{}", letter);
    std::string formula = read + " " + named(weight);
    if (find(bias) != nullptr) formula += " + " + named(bias);
    if (letter == 'q' && find("mixing") != nullptr)
      formula = fmt::format("({}) * {}", formula, named("mixing"));
    if (g_.query_key_norm == QueryKeyNorm::kL2 && letter != 'v') {
      formula = fmt::format("({}) / its length", formula);
      if (letter == 'q') formula = "score_factor " + formula;
    }
    return formula;
  }

  /// By more than the rounding of products in another order.
  static bool differs(Var a, Var b) {
    const auto [difference, magnitude] = deviation_of(a.value(), b.value());
    return difference > 1e-5 * magnitude;
  }

  /// Adds part `name` of `met`, when it is not the same as `before`; returns how it is called.
  std::string turned(const std::string& name, Var before, Var met, int64_t begin, int64_t end,
                     const std::vector<int>& owners, TraceAxis rows, bool shown) {
    if (before.value().data == met.value().data) return name;
    if (shown) {
      add(name + "_turned", name + ", pairs of numbers turned by the row's place", owners,
          copied(met.value().columns_between(begin, end)), rows);
    }
    return name + "_turned";
  }

  /// Returns Concat(head_1, ...).
  Tensor heads(Var q, const KeysAndValues& kv, Var met_q, Var met_k) {
    const int64_t d_key = q.cols() / g_.heads, key_heads = kv.keys.cols() / d_key;
    const int64_t value_heads = kv.values.cols() / g_.d_value;
    const auto key_head = [&](int h) { return h * key_heads / g_.heads; };
    const auto value_head = [&](int h) { return h * value_heads / g_.heads; };
    Tensor together(x_.rows(), int64_t{g_.heads} * g_.d_value);
    for (int h = 0; h < g_.heads; ++h) {
      parameters_of(h);
      const int64_t k = key_head(h), v = value_head(h);
      const Var q_h = tape_.columns(q, h * d_key, (h + 1) * d_key);
      const Var k_h = tape_.columns(kv.keys, k * d_key, (k + 1) * d_key);
      const Var v_h = tape_.columns(kv.values, v * g_.d_value, (v + 1) * g_.d_value);
      const std::vector<int> key_owners = sharing(g_.heads, h, key_head);
      const std::vector<int> value_owners = sharing(g_.heads, h, value_head);
      const std::string k_name = fmt::format("k_{}", key_owners.front());
      const std::string v_name = fmt::format("v_{}", value_owners.front());
      add(fmt::format("q_{}", h), projection("x", 'q', h), {h}, copied(q_h.value()), kQueries);
      if (key_owners.front() == h)
        add(k_name, projection(rows_name(), 'k', h), key_owners, copied(k_h.value()), kKeys);
      if (value_owners.front() == h)
        add(v_name, projection(rows_name(), 'v', h), value_owners, copied(v_h.value()), kKeys);

      const std::string met_q_name =
          turned(fmt::format("q_{}", h), q, met_q, h * d_key, (h + 1) * d_key, {h}, kQueries, true);
      const std::string met_k_name = turned(k_name, kv.keys, met_k, k * d_key, (k + 1) * d_key, key_owners,
                                            kKeys, key_owners.front() == h);

      const float scale = g_.query_key_norm == QueryKeyNorm::kL2 ? 1 : *g_.scale;  // q has its factor already
      const AttentionResult<float> result =
          attention_formula(tape_, tape_.columns(met_q, h * d_key, (h + 1) * d_key),
                            tape_.columns(met_k, k * d_key, (k + 1) * d_key), v_h, scale, mask_, int64_t{0});
      add(fmt::format("scores_{}", h), fmt::format("{} {}^T", met_q_name, met_k_name), {h},
          copied(result.scores.value()), kQueries, kKeys);
      std::string last = fmt::format("scaled_{}", h);
      add(last, fmt::format("{:.4g} scores_{}", scale, h), {h}, copied(result.scaled.value()), kQueries,
          kKeys);
      if (mask_.kind() != Mask::Kind::kNone) {
        add(fmt::format("masked_{}", h), fmt::format("{}, -infinity where the mask hides the key", last), {h},
            masked(result.scaled.value()), kQueries, kKeys);
        last = fmt::format("masked_{}", h);
      }
      add(fmt::format("weights_{}", h), fmt::format("softmax of the rows of {}", last), {h},
          copied(result.weights.value()), kQueries, kKeys);
      add(fmt::format("z_{}", h), fmt::format("weights_{} {}", h, v_name), {h}, copied(result.output.value()),
          kQueries);
      for (int64_t i = 0; i < together.rows(); ++i) {
        std::copy_n(result.output.value().row(i), g_.d_value, together.view().row(i) + h * g_.d_value);
      }
    }
    return together;
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
    const auto [difference, magnitude] = deviation_of(together.view(), layer);
    trace_.difference = difference;
    trace_.magnitude = magnitude;
    constexpr double kRounding = 1e-3;
    if (trace_.difference <= kRounding * std::max(1e-6, trace_.magnitude)) return;
    throw Error(
        fmt::format("{} does more than softmax(scale Q K^T) V (its heads differ from that by {:.2g}), "
                    "which a trace would not show; trace a layer without positions, norms or mixed "
                    "weights in its attention",
                    layer_.name(), trace_.difference));
  }

  void output(Tensor together) {
    std::vector<std::string> names;
    for (int h = 0; h < g_.heads; ++h) names.push_back(fmt::format("z_{}", h));
    add("z", fmt::format("[{}], side by side", fmt::join(names, " | ")), {}, together, kQueries);
    if (layer_.output() == nullptr) {
      add("output", "z", {}, together, kQueries);
      return;
    }
    for (const Named& p : parameters_) {
      if (!after_heads(p)) continue;
      const int64_t rows = p.value->rows() / g_.heads;
      add(p.name,
          p.name == "w_o" ? fmt::format("learned: {} rows meet each head's z in turn", rows) : "learned", {},
          *p.value);
    }
    const Var y = affine(tape_, tape_.constant(together.view()), *layer_.output());
    add("output", find("b_o") != nullptr ? "z w_o + b_o" : "z w_o", {}, copied(y.value()), kQueries);
  }

  MultiHeadAttention& layer_;
  const HeadGeometry& g_;
  int d_model_;
  bool own_rows_;
  Tensor x_, memory_;
  Mask mask_;
  Tape tape_;
  std::vector<Named> parameters_;
  AttentionTrace trace_;
};

}  // namespace

const TraceStep& AttentionTrace::step(std::string_view name) const {
  std::vector<std::string> names;
  for (const TraceStep& step : steps) {
    if (step.name == name) return step;
    names.push_back(step.name);
  }
  throw UsageError(fmt::format("the trace has no step '{}'; it has {}", name, fmt::join(names, ", ")));
}

AttentionTrace trace_attention(MultiHeadAttention& layer, ConstMatrixView x, ConstMatrixView memory,
                               const Mask& mask) {
  return Walk(layer, x, memory, mask).run();
}

AttentionTrace trace_attention(Transformer& model, std::string_view name, std::span<const int32_t> source,
                               std::span<const int32_t> target) {
  MultiHeadAttention& layer = model.attention(name);
  const AttentionKind kind = attention_place(name).kind;
  if (source.empty()) throw UsageError("there is no source to trace; give at least one token");
  if (kind != AttentionKind::kEncoderSelf && target.empty())
    throw UsageError(fmt::format("{} is the decoder's; give a target for it to read", name));
  Watch watch(layer.name());
  Tape tape;
  Context context{.tape = tape, .observer = &watch};
  const auto one = [](std::span<const int32_t> ids) {
    return Ragged::from_lengths(std::vector<int32_t>{static_cast<int32_t>(ids.size())});
  };
  const Ragged source_rows = one(source), target_rows = one(target);
  const Sequences sources{.ids = source, .ragged = &source_rows, .sentences = {}};
  const Var memory = model.encode(context, sources);
  if (kind != AttentionKind::kEncoderSelf) {
    model.decode(context, {.ids = target, .ragged = &target_rows, .sentences = {}}, memory, sources);
  }
  const Tensor none;
  return trace_attention(layer, watch.queries.view(),
                         kind == AttentionKind::kCross ? watch.memory.view() : none.view(),
                         kind == AttentionKind::kDecoderSelf ? Mask::causal() : Mask::none());
}

}  // namespace mh
