// Query-key normalisation (Henry et al. 2020): scores are g * cos(q, k). Queries and keys of any heads are
// scaled to length 1, queries times a learned g, which stands in the place of 1 / sqrt(d_key). Cost: a
// parameter, and 3 k + 2 other operations for each head of a row of queries and of keys; no scale.
#include <fmt/format.h>

#include <cmath>

#include "multihead/autograd/normalise_heads.h"
#include "multihead/kernels/attention.h"
#include "multihead/nn/geometries/query_key_scheme.h"
#include "multihead/nn/initialise.h"

namespace mh {
namespace {

class NormalisedHeads final : public Heads {
 public:
  NormalisedHeads(std::unique_ptr<Heads> heads, float start)
      : heads_(std::move(heads)), start_(start), factor_(1, 1) {}

  HeadShape shape() const override {
    HeadShape shape = heads_->shape();
    shape.scale = 1;
    return shape;
  }
  ProjectedHeads project(Context& context, Var x) const override { return heads_->project(context, x); }
  Var queries(Context& context, Var x) const override { return heads_->queries(context, x); }
  KeysValues keys_and_values(Context& context, Var memory) const override {
    return heads_->keys_and_values(context, memory);
  }
  Var normed(Context& context, HeadPart part, Var rows) const override {
    const auto heads = static_cast<int>(heads_->shape().heads_of(part));
    return normalise_heads(context.tape, rows, heads, part == HeadPart::kQueries ? &factor_ : nullptr);
  }
  void initialise(Random& random) override {
    heads_->initialise(random);
    fill_with(factor_, start_);
  }
  void visit(const std::string& name, const ParameterVisitor& visitor) override {
    heads_->visit(name, visitor);
    visitor(name + ".score_factor", factor_);
  }

 private:
  std::unique_ptr<Heads> heads_;
  float start_;
  Parameter factor_;  // g
};

class PlainScheme final : public QueryKeyScheme {
 public:
  float usual_scale(int d_key) const override { return attention_scale(d_key); }
};

class NormScheme final : public QueryKeyScheme {
 public:
  void find_problems(const HeadScheme& heads, std::vector<std::string>& found) const override {
    if (heads.projects_keys()) return;
    found.push_back(
        "query_key_norm scales queries and keys, of which merged scores have none of their own; set scores "
        "to query_key");
  }
  std::vector<GeometryPreset> presets() const override {
    return {{{"query-key-norm", "scores are a learned number times cos(q, k) (Henry et al. 2020)"},
             [](int h, int) { return HeadGeometry{.heads = h, .query_key_norm = QueryKeyNorm::kL2}; }}};
  }
  float usual_scale(int) const override {
    constexpr double kTokens = 32;  // of a long sentence
    return static_cast<float>(std::log2(kTokens * kTokens - kTokens));
  }
  bool takes_scale() const override { return true; }
  std::unique_ptr<Heads> wrap(std::unique_ptr<Heads> heads, const HeadGeometry& g) const override {
    return std::make_unique<NormalisedHeads>(std::move(heads), *g.scale);
  }
  const char* parameter() const override { return "score_factor"; }
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
  const char* refusal(Change change) const override {
    if (change != Change::kProducts) return nullptr;
    return "with a query_key_norm queries and keys are normed before their product";
  }
};

}  // namespace

template <>
const QueryKeyScheme& query_key_scheme<QueryKeyNorm::kNone>() {
  static const PlainScheme scheme;
  return scheme;
}

template <>
const QueryKeyScheme& query_key_scheme<QueryKeyNorm::kL2>() {
  static const NormScheme scheme;
  return scheme;
}

}  // namespace mh
