// q_i = (x W^Q) * m_i,  k = x W^K for all heads alike: heads share W^Q and W^K [d_model, D_k] and differ by a
// mixing vector m_i [D_k] only (Cordonnier, Loukas and Jaggi 2020). Canonical heads are the case where m_i is
// 1 on head i's own columns and 0 elsewhere. Values are each head's own.
//
// Cost, with D_k = s: of queries d s + h s parameters, Tq d s multiply-adds and Tq h s others for mixing; of
// keys d s and Tk d s; a score sums s numbers.
//
// Conversion from canonical heads takes the nearest sum_r m_ir q_r k_r^T to every W_i^Q W_i^K^T. Conversion
// to canonical heads is exact: they share one head of keys.
#include <fmt/format.h>

#include <algorithm>
#include <climits>

#include "multihead/autograd/mix_heads.h"
#include "multihead/base/error.h"
#include "multihead/nn/geometries/shared_factors.h"
#include "multihead/nn/head_scheme.h"
#include "multihead/nn/initialise.h"

namespace mh {
namespace {

class CollaborativeHeads final : public Heads {
 public:
  CollaborativeHeads(const HeadGeometry& g, int d_model)
      : geometry_(g),
        biased_(has_bias_of_heads(g.biases)),
        w_q_(d_model, g.shared_size),
        w_k_(d_model, g.shared_size),
        w_v_(d_model, int64_t{g.heads} * g.d_value),
        b_q_(1, g.shared_size),
        b_k_(1, g.shared_size),
        b_v_(1, w_v_.value.cols()),
        mixing_(g.heads, g.shared_size),
        all_({&w_q_, &w_k_, &w_v_}, biases_or_none(g.biases, {&b_q_, &b_k_, &b_v_})),
        queries_({&w_q_}, biases_or_none(g.biases, {&b_q_})),
        memory_({&w_k_, &w_v_}, biases_or_none(g.biases, {&b_k_, &b_v_})) {}

  HeadShape shape() const override { return head_scheme<Scores::kCollaborative>().shape(geometry_, 0); }
  ProjectedHeads project(Context& context, Var x) const override {
    Tape& tape = context.tape;
    const Var all = affine(tape, x, all_);
    const int64_t size = geometry_.shared_size;
    return {mix_heads(tape, tape.columns(all, 0, size), mixing_), tape.columns(all, size, 2 * size),
            tape.columns(all, 2 * size, all.cols())};
  }
  Var queries(Context& context, Var x) const override {
    return mix_heads(context.tape, affine(context.tape, x, queries_), mixing_);
  }
  KeysValues keys_and_values(Context& context, Var memory) const override {
    const Var both = affine(context.tape, memory, memory_);
    const int64_t size = geometry_.shared_size;
    return {context.tape.columns(both, 0, size), context.tape.columns(both, size, both.cols())};
  }
  void initialise(Random& random) override {
    for (Parameter* w : {&w_q_, &w_k_}) initialise_heads(geometry_, *w, 1, all_.outputs(), random);
    initialise_heads(geometry_, w_v_, geometry_.heads, all_.outputs(), random);
    // Around 1, and spread, so that heads differ from the start: equal mixing vectors make equal heads.
    using enum HeadInitialisation;
    const bool equal = geometry_.initialisation == kEqual || geometry_.initialisation == kEqualInput;
    fill_normal(mixing_, random, equal ? 0 : geometry_.initialisation == kEqualWithNoise ? 1e-6 : 0.5);
    for (int64_t i = 0; i < mixing_.value.size(); ++i) mixing_.value.data()[i] += 1;
    mixing_.changed();
  }
  void visit(const std::string& name, const ParameterVisitor& visitor) override {
    const auto pair = [&](const char* weight, Parameter& w, const char* bias, Parameter& b) {
      visitor(name + weight, w);
      if (biased_) visitor(name + bias, b);
    };
    pair(".w_q", w_q_, ".b_q", b_q_);
    pair(".w_k", w_k_, ".b_k", b_k_);
    visitor(name + ".mixing", mixing_);
    pair(".w_v", w_v_, ".b_v", b_v_);
  }

 private:
  HeadGeometry geometry_;
  bool biased_;
  Parameter w_q_, w_k_, w_v_, b_q_, b_k_, b_v_;
  Parameter mixing_;  // [heads, D_k]
  Affine all_, queries_, memory_;
};

void multiply_columns(DoubleMatrix& a, const DoubleMatrix& by) {
  for (int64_t i = 0; i < a.rows(); ++i) {
    for (int64_t j = 0; j < a.cols(); ++j) a(i, j) *= by(0, j);
  }
}

class CollaborativeScheme final : public HeadScheme {
 public:
  void complete(HeadGeometry& g) const override {
    if (g.shared_size == 0)
      g.shared_size = static_cast<int>(std::clamp<int64_t>(int64_t{g.heads} * g.d_key, INT_MIN, INT_MAX));
  }
  void find_problems(const HeadGeometry& g, int, std::vector<std::string>& found) const override {
    if (!has_own_keys(g))
      found.push_back("collaborative scores already share their keys; set key_heads and value_heads to 0");
  }
  std::vector<GeometryPreset> presets() const override {
    return {{{"collaborative", "shared W^Q and W^K, a mixing vector a head (Cordonnier et al. 2020)"},
             [](int h, int) { return HeadGeometry{.heads = h, .scores = Scores::kCollaborative}; }}};
  }
  bool several_softmaxes() const override { return false; }
  const char* key_size_field() const override { return "shared_size"; }

  HeadShape shape(const HeadGeometry& g, int) const override {
    return {g.heads, 1, g.heads, g.shared_size, g.d_value, *g.scale};
  }
  std::unique_ptr<Heads> make(const HeadGeometry& g, int d_model) const override {
    return std::make_unique<CollaborativeHeads>(g, d_model);
  }

  std::optional<Block> block(const HeadGeometry& g, int, const NamedShape& parameter,
                             int head) const override {
    if (parameter.name == "mixing") return Block{head, head + 1, 0, parameter.cols};
    return columns_of_head(parameter, head, g.heads, {{"w_v", g.heads}, {"b_v", g.heads}});
  }
  HeadMatrix head_matrix(const LayerWeights& layer, HeadPart part, int head) const override {
    HeadMatrix found = HeadScheme::head_matrix(layer, part, head);
    if (part != HeadPart::kQueries) return found;
    const DoubleMatrix mixing = own_part(layer, "mixing", head);
    multiply_columns(found.weight, mixing);
    multiply_columns(found.bias, mixing);
    return found;
  }
  std::string formula(const TraceNames& names, HeadPart part, const std::string& rows,
                      int head) const override {
    std::string shared = HeadScheme::formula(names, part, rows, head);
    if (part != HeadPart::kQueries) return shared;
    return fmt::format("({}) * {}", shared, names.of_head("mixing", head));
  }
  LedgerPart cost(const HeadGeometry& g, HeadPart part, const ProjectedRows& rows) const override {
    if (part != HeadPart::kQueries) return HeadScheme::cost(g, part, rows);
    LedgerPart cost;
    cost.add_affine(rows.queries, rows.d_model, g.shared_size, has_bias_of_heads(g.biases));
    const int64_t shared = count_product({rows.queries, g.shared_size}),
                  mixed = count_product({shared, g.heads});
    cost.parameters = count_sum(cost.parameters, count_product({g.heads, g.shared_size}));
    cost.other_flops = count_sum(cost.other_flops, mixed);
    cost.add_moves(shared, mixed);
    return cost;
  }

  LayerWeights from_heads(const LayerWeights& layer, const HeadGeometry& wanted) const override {
    const HeadGeometry& g = layer.geometry;
    const int shared_size = wanted.shared_size;
    if (shared_size < 1) throw UsageError(fmt::format("shared_size is {}; expected at least 1", shared_size));
    LayerWeights to = with_outputs_of(layer, Scores::kCollaborative);
    to.geometry.shared_size = shared_size;
    to.geometry.key_heads = to.geometry.value_heads = g.heads;
    put_projection(to, HeadPart::kValues, heads_of(layer, HeadPart::kValues, g.heads));
    std::vector<DoubleMatrix> lefts, rights;
    for (int h = 0; h < g.heads; ++h) {
      // The bias as a row more: b_i^Q W_i^K^T is to be kept, too.
      lefts.push_back(with_bias(mh::head_matrix(layer, HeadPart::kQueries, h)));
      rights.push_back(mh::head_matrix(layer, HeadPart::kKeys, h).weight);
    }
    constexpr int kRounds = 30;
    const SharedFactors factors = shared_factors(std::move(lefts), std::move(rights), shared_size,
                                                 shared_size < g.heads * g.d_key ? kRounds : 0);
    put_projection(to, HeadPart::kQueries, {bias_apart(factors.left)});
    put_projection(to, HeadPart::kKeys, {{factors.right, DoubleMatrix(1, shared_size)}});
    to.values["mixing"] = in_float(factors.mixing.view());
    return to;
  }
};

}  // namespace

template <>
const HeadScheme& head_scheme<Scores::kCollaborative>() {
  static const CollaborativeScheme scheme;
  return scheme;
}

}  // namespace mh
