// q_i = (x W^Q) W_i^Q, and likewise for keys and values: a d_model x d_model matrix before each head's own.
// The product of the two is one matrix, so the layer can compute nothing new; only training may go
// differently. Cost: for each part d d parameters and, a row, d d multiply-adds more.
#include <fmt/format.h>

#include "multihead/nn/geometries/separate_projections.h"
#include "multihead/nn/head_scheme.h"
#include "multihead/nn/initialise.h"

namespace mh {
namespace {

/// x -> x W W', W [d_model, d_model], W' [d_model, heads * size].
struct DoubledProjection {
  DoubledProjection(int d_model, int heads, int size, Biases biases)
      : before(d_model, d_model),
        weight(d_model, int64_t{heads} * size),
        bias(1, weight.value.cols()),
        biased(has_bias_of_heads(biases)),
        first({&before}, {}),
        second({&weight}, biases_or_none(biases, {&bias})) {}
  DoubledProjection(const DoubledProjection&) = delete;
  DoubledProjection& operator=(const DoubledProjection&) = delete;

  Var apply(Context& context, Var x) const {
    return affine(context.tape, affine(context.tape, x, first), second);
  }
  void initialise(const HeadGeometry& geometry, int heads, Random& random) {
    fill_xavier(before, random, before.value.rows(), before.value.cols());
    initialise_heads(geometry, weight, heads, 3 * weight.value.cols(), random);
  }
  void visit(const std::string& name, HeadPart part, const ParameterVisitor& visitor) {
    visitor(name + "." + before_name(part), before);
    visitor(name + "." + weight_name(part), weight);
    if (biased) visitor(name + "." + bias_name(part), bias);
  }

  Parameter before, weight, bias;
  bool biased;
  Affine first, second;
};

class DoubledHeads final : public SeparateProjections<DoubledProjection> {
 public:
  DoubledHeads(const HeadGeometry& g, int d_model)
      : SeparateProjections(
            g, [&](int heads, int size) { return DoubledProjection(d_model, heads, size, g.biases); }) {}

  void initialise(Random& random) override {
    q_.initialise(geometry_, geometry_.heads, random);
    k_.initialise(geometry_, geometry_.key_heads, random);
    v_.initialise(geometry_, geometry_.value_heads, random);
  }
};

class DoubledScheme final : public HeadScheme {
 public:
  std::vector<GeometryPreset> presets() const override {
    return {{{"doubled", "x W^Q W_i^Q: another d x d before each head's"},
             [](int h, int) { return HeadGeometry{.heads = h, .scores = Scores::kDoubled}; }}};
  }
  std::unique_ptr<Heads> make(const HeadGeometry& g, int d_model) const override {
    return std::make_unique<DoubledHeads>(g, d_model);
  }
  HeadMatrix head_matrix(const LayerWeights& layer, HeadPart part, int head) const override {
    HeadMatrix found = HeadScheme::head_matrix(layer, part, head);
    found.weight = product(in_double(layer.values.at(before_name(part)).view()).view(), found.weight.view());
    return found;
  }
  std::string formula(const TraceNames& names, HeadPart part, const std::string& rows,
                      int head) const override {
    return HeadScheme::formula(names, part, fmt::format("{} {}", rows, before_name(part)), head);
  }
  LedgerPart cost(const HeadGeometry& g, HeadPart part, const ProjectedRows& rows) const override {
    LedgerPart cost;
    cost.add_affine(rows.of(part), rows.d_model, rows.d_model, false);
    return cost += HeadScheme::cost(g, part, rows);
  }
};

}  // namespace

template <>
const HeadScheme& head_scheme<Scores::kDoubled>() {
  static const DoubledScheme scheme;
  return scheme;
}

}  // namespace mh
