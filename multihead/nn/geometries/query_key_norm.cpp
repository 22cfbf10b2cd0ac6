// Norms of queries and keys, of any heads that have both. Cost: parameters, and other operations for each head of a row of
// queries and of keys.
//   l2   scores are g * cos(q, k) (query-key normalisation, Henry et al. 2020): queries and keys are scaled to length 1, queries
//        times a learned g, which stands in the place of 1 / sqrt(d_key). 1 parameter, 3 k + 2 operations; no scale.
//   rms  q and k are divided by their root mean square, sqrt(|q|^2 / k + epsilon), and multiplied by learned gains [k], one for
//        all queries and one for all keys (Qwen3). 2 k parameters, 4 k + 4 operations.
//   rms_row  the same over the queries of all heads together, and over their keys, with gains [heads k] (OLMo 2).
//        2 heads k parameters, and 4 operations for each number and each row of queries and of keys.
#include <fmt/format.h>

#include <cmath>

#include "multihead/autograd/normalise_heads.h"
#include "multihead/kernels/attention.h"
#include "multihead/nn/initialise.h"
#include "multihead/nn/query_key_scheme.h"

namespace mh {
namespace {

/// Heads whose queries and keys are normed before they turn and meet.
class NormalisedHeads : public Heads {
 public:
  explicit NormalisedHeads(std::unique_ptr<Heads> heads) : heads_(std::move(heads)) {}

  HeadShape shape() const override { return heads_->shape(); }
  ProjectedHeads project(Context& context, Var x) const override { return heads_->project(context, x); }
  Var queries(Context& context, Var x) const override { return heads_->queries(context, x); }
  KeysValues keys_and_values(Context& context, Var memory) const override {
    return heads_->keys_and_values(context, memory);
  }
  Var normed(Context& context, HeadPart part, Var rows) const override {
    return normalise_heads(context.tape, rows, static_cast<int>(heads_->shape().heads_of(part)),
                           norm_of(part));
  }
  void initialise(Random& random) override { heads_->initialise(random); }
  void visit(const std::string& name, const ParameterVisitor& visitor) override {
    heads_->visit(name, visitor);
  }

 private:
  virtual HeadNorm norm_of(HeadPart part) const = 0;

  std::unique_ptr<Heads> heads_;
};

class HeadsOfLengthOne final : public NormalisedHeads {
 public:
  HeadsOfLengthOne(std::unique_ptr<Heads> heads, float start)
      : NormalisedHeads(std::move(heads)), start_(start), factor_(1, 1) {}

  HeadShape shape() const override {
    HeadShape shape = NormalisedHeads::shape();
    shape.scale = 1;
    return shape;
  }
  void initialise(Random& random) override {
    NormalisedHeads::initialise(random);
    fill_with(factor_, start_);
  }
  void visit(const std::string& name, const ParameterVisitor& visitor) override {
    NormalisedHeads::visit(name, visitor);
    visitor(name + ".score_factor", factor_);
  }

 private:
  HeadNorm norm_of(HeadPart part) const override {
    return {.kind = HeadNorm::Kind::kLength, .gain = part == HeadPart::kQueries ? &factor_ : nullptr};
  }

  float start_;
  Parameter factor_;  // g
};

class RmsHeads final : public NormalisedHeads {
 public:
  /// together: all heads of a row have one root mean square.
  RmsHeads(std::unique_ptr<Heads> heads, bool together, float epsilon)
      : NormalisedHeads(std::move(heads)),
        together_(together),
        epsilon_(epsilon),
        of_queries_(1, size_of(HeadPart::kQueries)),
        of_keys_(1, size_of(HeadPart::kKeys)) {}

  Var normed(Context& context, HeadPart part, Var rows) const override {
    return together_ ? normalise_heads(context.tape, rows, 1, norm_of(part))
                     : NormalisedHeads::normed(context, part, rows);
  }
  void initialise(Random& random) override {
    NormalisedHeads::initialise(random);
    for (Parameter* gain : {&of_queries_, &of_keys_}) fill_with(*gain, 1);
  }
  void visit(const std::string& name, const ParameterVisitor& visitor) override {
    NormalisedHeads::visit(name, visitor);
    visitor(name + ".query_norm", of_queries_);
    visitor(name + ".key_norm", of_keys_);
  }

 private:
  HeadNorm norm_of(HeadPart part) const override {
    return {.kind = HeadNorm::Kind::kRms,
            .gain = part == HeadPart::kQueries ? &of_queries_ : &of_keys_,
            .epsilon = epsilon_};
  }
  int64_t size_of(HeadPart part) const {
    const HeadShape all = shape();
    return (together_ ? int64_t{all.heads_of(part)} : 1) * all.d_key;
  }

  bool together_;
  float epsilon_;
  Parameter of_queries_, of_keys_;  // gains [1, d_key], or [1, heads * d_key]
};

class PlainScheme final : public QueryKeyScheme {
 public:
  float usual_scale(int d_key) const override { return attention_scale(d_key); }
};

/// What both norms have in common.
class NormScheme : public QueryKeyScheme {
 public:
  void find_problems(const HeadScheme& heads, std::vector<std::string>& found) const override {
    if (heads.projects_keys()) return;
    found.push_back(
        "query_key_norm scales queries and keys, of which merged scores have none of their own; set scores "
        "to query_key");
  }
  const char* refusal(Change change) const override {
    if (change != Change::kProducts) return nullptr;
    return "with a query_key_norm queries and keys are normed before their product";
  }
};

class LengthScheme final : public NormScheme {
 public:
  std::vector<GeometryPreset> presets() const override {
    return {{{"query-key-norm", "scores are a learned number times cos(q, k) (Henry et al. 2020)"},
             [](int h, int) { return HeadGeometry{.heads = h, .query_key_norm = QueryKeyNorm::kL2}; }}};
  }
  float usual_scale(int) const override {
    constexpr double kTokens = 32;  // of a long sentence
    return static_cast<float>(std::log2(kTokens * kTokens - kTokens));
  }
  bool takes_scale() const override { return true; }
  std::unique_ptr<Heads> wrap(std::unique_ptr<Heads> heads, const HeadGeometry& g, float) const override {
    return std::make_unique<HeadsOfLengthOne>(std::move(heads), *g.scale);
  }
  std::vector<const char*> parameters() const override { return {"score_factor"}; }
  void fold_gain(const LayerWeights& layer, HeadPart part, int, DoubleMatrix& weight) const override {
    if (part != HeadPart::kQueries) return;
    const double factor = layer.values.at("score_factor")(0, 0);
    for (int64_t i = 0; i < weight.size(); ++i) weight.data()[i] *= factor;
  }
  std::string formula(HeadPart part, std::string of_head) const override {
    return fmt::format("{}({}) / its length", part == HeadPart::kQueries ? "score_factor " : "", of_head);
  }
  /// Each head of each row to length 1: square, sum and scale its numbers; a root and a division.
  void add_cost(LedgerPart& cost, HeadPart part, int64_t rows, int64_t heads, int64_t size) const override {
    const int64_t numbers = count_product({rows, heads, size});
    cost.other_flops =
        count_sum(cost.other_flops, count_sum(count_product({3, numbers}), count_product({2, rows, heads})));
    cost.add_moves(numbers, numbers);
    if (part == HeadPart::kQueries) ++cost.parameters;  // the factor
  }
};

class RmsScheme final : public NormScheme {
 public:
  explicit RmsScheme(bool together) : together_(together) {}

  float usual_scale(int d_key) const override { return attention_scale(d_key); }
  std::unique_ptr<Heads> wrap(std::unique_ptr<Heads> heads, const HeadGeometry&,
                              float epsilon) const override {
    return std::make_unique<RmsHeads>(std::move(heads), together_, epsilon);
  }
  std::vector<const char*> parameters() const override { return {"query_norm", "key_norm"}; }
  void fold_gain(const LayerWeights& layer, HeadPart part, int head, DoubleMatrix& weight) const override {
    if (part == HeadPart::kValues) return;
    const Tensor& gain = layer.values.at(part == HeadPart::kQueries ? "query_norm" : "key_norm");
    const int64_t first = together_ ? head * weight.cols() : 0;
    for (int64_t i = 0; i < weight.rows(); ++i) {
      for (int64_t n = 0; n < weight.cols(); ++n) weight(i, n) *= gain(0, first + n);
    }
  }
  std::string formula(HeadPart part, std::string of_head) const override {
    const bool query = part == HeadPart::kQueries;
    return fmt::format("{}{} ({}) / {}", together_ ? "its part of " : "", query ? "query_norm" : "key_norm",
                       of_head,
                       !together_ ? "its root mean square"
                       : query    ? "the root mean square of all heads' queries"
                                  : "the root mean square of all heads' keys");
  }
  const char* refusal(Change change) const override {
    if (!together_) return NormScheme::refusal(change);
    if (change == Change::kOrder) return nullptr;
    return "with query_key_norm rms_row a norm runs over the queries, or keys, of all heads together";
  }
  /// Square, sum, scale and multiply the numbers of each head of each row; mean, epsilon, root and division of each norm.
  void add_cost(LedgerPart& cost, HeadPart, int64_t rows, int64_t heads, int64_t size) const override {
    const int64_t numbers = count_product({rows, heads, size});
    const int64_t of_norms = count_product({4, rows, together_ ? 1 : heads});
    cost.other_flops = count_sum(cost.other_flops, count_sum(count_product({4, numbers}), of_norms));
    cost.add_moves(numbers, numbers);
    cost.parameters = count_sum(cost.parameters, together_ ? count_product({heads, size}) : size);
  }

 private:
  bool together_;
};

}  // namespace

template <>
const QueryKeyScheme& query_key_scheme<QueryKeyNorm::kNone>() {
  static const PlainScheme scheme;
  return scheme;
}

template <>
const QueryKeyScheme& query_key_scheme<QueryKeyNorm::kL2>() {
  static const LengthScheme scheme;
  return scheme;
}

template <>
const QueryKeyScheme& query_key_scheme<QueryKeyNorm::kRms>() {
  static const RmsScheme scheme(false);
  return scheme;
}

template <>
const QueryKeyScheme& query_key_scheme<QueryKeyNorm::kRmsRow>() {
  static const RmsScheme scheme(true);
  return scheme;
}

}  // namespace mh
