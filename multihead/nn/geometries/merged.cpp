// (x_a W_i) . x_b: one matrix W_i [d, d] a head stands for W_i^Q W_i^K^T. The keys are the input itself, one
// head of them shared by all; only values are projected. The bias c_i stands for b_i^Q W_i^K^T; b_i^K would
// cancel in the softmax. The scale stays the geometry's, 1 / sqrt(d_key), so that scores compare.
//
// Cost: d h d parameters of queries and Tq d h d multiply-adds, none of keys; a score sums d numbers.
//
// Conversion from canonical heads is exact. Conversion to canonical heads splits W_i (with the bias as one
// more row) into W_i^Q W_i^K^T by its singular values; that is exact when d_key is at least its rank.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "multihead/base/error.h"
#include "multihead/nn/head_scheme.h"

namespace mh {
namespace {

class MergedHeads final : public Heads {
 public:
  MergedHeads(const HeadGeometry& g, int d_model)
      : geometry_(g),
        d_model_(d_model),
        biased_(has_bias_of_heads(g.biases)),
        w_(d_model, int64_t{g.heads} * d_model),
        w_v_(d_model, int64_t{g.heads} * g.d_value),
        c_(1, w_.value.cols()),
        b_v_(1, w_v_.value.cols()),
        queries_({&w_}, biases_or_none(g.biases, {&c_})),
        values_({&w_v_}, biases_or_none(g.biases, {&b_v_})) {}

  HeadShape shape() const override { return head_scheme<Scores::kMerged>().shape(geometry_, d_model_); }
  ProjectedHeads project(Context& context, Var x) const override {
    return {affine(context.tape, x, queries_), x, affine(context.tape, x, values_)};
  }
  Var queries(Context& context, Var x) const override { return affine(context.tape, x, queries_); }
  KeysValues keys_and_values(Context& context, Var memory) const override {
    return {memory, affine(context.tape, memory, values_)};
  }
  void initialise(Random& random) override {
    // As the product of two matrices W_i^Q, W_i^K that start as the geometry says: equal variance of scores.
    Parameter q(d_model_, int64_t{geometry_.heads} * geometry_.d_key), k(q.value.rows(), q.value.cols());
    const int64_t packed = 2 * q.value.cols() + w_v_.value.cols();
    initialise_heads(geometry_, q, geometry_.heads, packed, random);
    initialise_heads(geometry_, k, geometry_.heads, packed, random);
    for (int h = 0; h < geometry_.heads; ++h) {
      for (int64_t a = 0; a < d_model_; ++a) {
        for (int64_t b = 0; b < d_model_; ++b) {
          double sum = 0;
          for (int64_t n = int64_t{h} * geometry_.d_key; n < (int64_t{h} + 1) * geometry_.d_key; ++n) {
            sum += static_cast<double>(q.value(a, n)) * k.value(b, n);
          }
          w_.value(a, int64_t{h} * d_model_ + b) = static_cast<float>(sum);
        }
      }
    }
    w_.changed();
    initialise_heads(geometry_, w_v_, geometry_.heads, packed, random);
  }
  void visit(const std::string& name, const ParameterVisitor& visitor) override {
    visitor(name + ".w_qk", w_);
    if (biased_) visitor(name + ".c_qk", c_);
    visitor(name + ".w_v", w_v_);
    if (biased_) visitor(name + ".b_v", b_v_);
  }

 private:
  HeadGeometry geometry_;
  int d_model_;
  bool biased_;
  Parameter w_, w_v_, c_, b_v_;
  Affine queries_, values_;
};

/// Columns times the square roots of `values`, of which the rest are zero: [rows, size].
DoubleMatrix balanced(const DoubleMatrix& vectors, const std::vector<double>& values, int64_t rank,
                      int64_t size) {
  DoubleMatrix scaled(vectors.rows(), size);
  for (int64_t i = 0; i < vectors.rows(); ++i) {
    for (int64_t n = 0; n < std::min(rank, size); ++n)
      scaled(i, n) = vectors(i, n) * std::sqrt(values[static_cast<size_t>(n)]);
  }
  return scaled;
}

class MergedScheme final : public HeadScheme {
 public:
  void find_problems(const HeadGeometry& g, int d_model, std::vector<std::string>& found) const override {
    if (!has_own_keys(g))
      found.push_back("merged scores already share their keys; set key_heads and value_heads to 0");
    if (d_model > kLargestHead) {
      found.push_back(fmt::format("merged scores make heads of d_model {}; the largest head is {}", d_model,
                                  kLargestHead));
    }
  }
  std::vector<GeometryPreset> presets() const override {
    return {{{"merged", "one matrix W_i for W_i^Q W_i^K^T"},
             [](int h, int) { return HeadGeometry{.heads = h, .scores = Scores::kMerged}; }}};
  }
  bool projects_keys() const override { return false; }
  bool several_softmaxes() const override { return false; }

  HeadShape shape(const HeadGeometry& g, int d_model) const override {
    return {g.heads, 1, g.heads, d_model, g.d_value, *g.scale};
  }
  std::unique_ptr<Heads> make(const HeadGeometry& g, int d_model) const override {
    return std::make_unique<MergedHeads>(g, d_model);
  }

  std::optional<Block> block(const HeadGeometry& g, int, const NamedShape& parameter,
                             int head) const override {
    return columns_of_head(parameter, head, g.heads,
                           {{"w_qk", g.heads}, {"c_qk", g.heads}, {"w_v", g.heads}, {"b_v", g.heads}});
  }
  HeadMatrix head_matrix(const LayerWeights& layer, HeadPart part, int head) const override {
    MH_ASSERT(part == HeadPart::kValues);
    return HeadScheme::head_matrix(layer, part, head);
  }
  std::string formula(const TraceNames& names, HeadPart part, const std::string& rows,
                      int head) const override {
    if (part == HeadPart::kValues) return HeadScheme::formula(names, part, rows, head);
    if (part == HeadPart::kKeys) return rows;
    const std::string product = rows + " " + names.of_head("w_qk", head);
    return names.has("c_qk") ? product + " + " + names.of_head("c_qk", head) : product;
  }
  LedgerPart cost(const HeadGeometry& g, HeadPart part, const ProjectedRows& rows) const override {
    return part == HeadPart::kKeys ? LedgerPart{} : HeadScheme::cost(g, part, rows);
  }

  Change change_to_canonical() const override { return Change::kProducts; }
  LayerWeights to_canonical(const LayerWeights& from, const CanonicalOptions& options) const override {
    const int d_key = options.d_key > 0 ? options.d_key : from.geometry.d_key;
    LayerWeights to = with_outputs_of(from, Scores::kQueryKey);
    to.geometry.d_key = d_key;
    std::vector<HeadMatrix> queries, keys;
    for (int h = 0; h < from.geometry.heads; ++h) {
      const int64_t begin = int64_t{h} * from.d_model, end = begin + from.d_model;
      const DoubleMatrix w = in_double(from.values.at("w_qk").view().columns_between(begin, end));
      const DoubleMatrix c = from.has("c_qk")
                                 ? in_double(from.values.at("c_qk").view().columns_between(begin, end))
                                 : DoubleMatrix(1, from.d_model);
      const Svd found = svd(with_bias({w, c}).view());
      const int64_t rank = numeric_rank(found.values);
      if (rank > d_key && !options.nearest) {
        throw UsageError(
            fmt::format("the matrix of head {} has rank {}, more than d_key {} can say; give d_key {}, or "
                        "ask for the nearest",
                        h, rank, d_key, rank));
      }
      queries.push_back(bias_apart(balanced(found.left, found.values, rank, d_key)));
      keys.push_back({balanced(found.right, found.values, rank, d_key), DoubleMatrix(1, d_key)});
    }
    put_projection(to, HeadPart::kQueries, queries);
    put_projection(to, HeadPart::kKeys, keys);
    return to;
  }
  LayerWeights from_heads(const LayerWeights& layer, const HeadGeometry&) const override {
    LayerWeights to = with_outputs_of(layer, Scores::kMerged);
    // Each head its own values: merged heads share but the rows themselves.
    to.geometry.key_heads = to.geometry.value_heads = layer.geometry.heads;
    put_projection(to, HeadPart::kValues, heads_of(layer, HeadPart::kValues, layer.geometry.heads));
    std::vector<DoubleMatrix> weights, biases;
    for (int h = 0; h < layer.geometry.heads; ++h) {
      const HeadMatrix q = mh::head_matrix(layer, HeadPart::kQueries, h);
      const HeadMatrix k = mh::head_matrix(layer, HeadPart::kKeys, h);
      const DoubleMatrix k_transposed = transposed(k.weight.view());
      weights.push_back(product(q.weight.view(), k_transposed.view()));
      biases.push_back(product(q.bias.view(), k_transposed.view()));
    }
    to.values["w_qk"] = concatenated_columns(weights);
    if (has_bias_of_heads(layer.geometry.biases)) to.values["c_qk"] = concatenated_columns(biases);
    return to;
  }
};

}  // namespace

template <>
const HeadScheme& head_scheme<Scores::kMerged>() {
  static const MergedScheme scheme;
  return scheme;
}

}  // namespace mh
