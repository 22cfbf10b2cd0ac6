// c = x W^C,  k_i = c W_i^K,  v_i = c W_i^V: one row of latent_size numbers a token, from which all heads'
// keys and values are projected; queries are canonical heads' (multi-head latent attention of DeepSeek-V2,
// 2024, section 2.1, without its rotary part and without the low-rank queries). Each head is the canonical
// one with W^C W_i^K and W^C W_i^V; keys and values depend on a row only through latent_size numbers.
//
//   w_q [d_model, heads * d_key]   w_latent [d_model, latent_size]   w_k [latent_size, key_heads * d_key]
//   w_v [latent_size, value_heads * d_value]; biases of queries, keys and values, none of c
//
// Cost, with latent_size = s: of keys d s + s g k parameters and Tk (d s + s g k) multiply-adds, of values s
// u v and Tk s u v.
#include <algorithm>

#include "multihead/nn/head_scheme.h"
#include "multihead/nn/initialise.h"

namespace mh {
namespace {

class LatentHeads final : public Heads {
 public:
  LatentHeads(const HeadGeometry& g, int d_model)
      : geometry_(g),
        biased_(has_bias_of_heads(g.biases)),
        w_q_(d_model, int64_t{g.heads} * g.d_key),
        w_latent_(d_model, g.latent_size),
        w_k_(g.latent_size, int64_t{g.key_heads} * g.d_key),
        w_v_(g.latent_size, int64_t{g.value_heads} * g.d_value),
        b_q_(1, w_q_.value.cols()),
        b_k_(1, w_k_.value.cols()),
        b_v_(1, w_v_.value.cols()),
        queries_({&w_q_}, biases_or_none(g.biases, {&b_q_})),
        latent_({&w_latent_}, {}),
        from_latent_({&w_k_, &w_v_}, biases_or_none(g.biases, {&b_k_, &b_v_})) {}

  HeadShape shape() const override { return head_scheme<Scores::kLatent>().shape(geometry_, 0); }
  ProjectedHeads project(Context& context, Var x) const override {
    const KeysValues both = keys_and_values(context, x);
    return {queries(context, x), both.k, both.v};
  }
  Var queries(Context& context, Var x) const override { return affine(context.tape, x, queries_); }
  KeysValues keys_and_values(Context& context, Var memory) const override {
    Tape& tape = context.tape;
    const Var latent = affine(tape, memory, latent_);     // [N, latent_size]
    const Var both = affine(tape, latent, from_latent_);  // [N, key_heads * d_key + value_heads * d_value]
    const int64_t keys = w_k_.value.cols();
    return {tape.columns(both, 0, keys), tape.columns(both, keys, both.cols())};
  }
  void initialise(Random& random) override {
    const int64_t packed = w_q_.value.cols() + from_latent_.outputs();  // as canonical heads of these sizes
    initialise_heads(geometry_, w_q_, geometry_.heads, packed, random);
    fill_xavier(w_latent_, random, w_latent_.value.rows(), w_latent_.value.cols());
    initialise_heads(geometry_, w_k_, geometry_.key_heads, packed, random);
    initialise_heads(geometry_, w_v_, geometry_.value_heads, packed, random);
  }
  void visit(const std::string& name, const ParameterVisitor& visitor) override {
    const auto pair = [&](const char* weight, Parameter& w, const char* bias, Parameter& b) {
      visitor(name + weight, w);
      if (biased_) visitor(name + bias, b);
    };
    pair(".w_q", w_q_, ".b_q", b_q_);
    visitor(name + ".w_latent", w_latent_);
    pair(".w_k", w_k_, ".b_k", b_k_);
    pair(".w_v", w_v_, ".b_v", b_v_);
  }

 private:
  HeadGeometry geometry_;
  bool biased_;
  Parameter w_q_, w_latent_, w_k_, w_v_;
  Parameter b_q_, b_k_, b_v_;
  Affine queries_, latent_, from_latent_;
};

class LatentScheme final : public HeadScheme {
 public:
  /// Half of what all keys are: of 8 heads 4 d_key, which is what DeepSeek-V2 has, and of fewer still less
  /// than the keys alone.
  void complete(HeadGeometry& g) const override {
    if (g.latent_size != 0) return;
    g.latent_size = static_cast<int>(std::clamp<int64_t>(int64_t{g.heads} * g.d_key / 2, 1, kLargestHead));
  }
  std::vector<GeometryPreset> presets() const override {
    return {{{"latent", "keys and values of all heads come from one short row a token (DeepSeek-V2, 2024)"},
             [](int h, int) { return HeadGeometry{.heads = h, .scores = Scores::kLatent}; }}};
  }
  std::unique_ptr<Heads> make(const HeadGeometry& g, int d_model) const override {
    return std::make_unique<LatentHeads>(g, d_model);
  }
  HeadMatrix head_matrix(const LayerWeights& layer, HeadPart part, int head) const override {
    HeadMatrix found = HeadScheme::head_matrix(layer, part, head);
    if (part != HeadPart::kQueries)
      found.weight = product(in_double(layer.values.at("w_latent").view()).view(), found.weight.view());
    return found;
  }
  std::string formula(const TraceNames& names, HeadPart part, const std::string& rows,
                      int head) const override {
    return HeadScheme::formula(names, part, part == HeadPart::kQueries ? rows : rows + " w_latent", head);
  }
  /// The latent rows are counted with the keys.
  LedgerPart cost(const HeadGeometry& g, HeadPart part, const ProjectedRows& rows) const override {
    if (part == HeadPart::kQueries) return HeadScheme::cost(g, part, rows);
    LedgerPart cost;
    if (part == HeadPart::kKeys) cost.add_affine(rows.keys, rows.d_model, g.latent_size, false);
    const HeadShape as = shape(g, rows.d_model);
    cost.add_affine(rows.keys, g.latent_size, count_product({as.heads_of(part), as.size_of(part)}),
                    has_bias_of_heads(g.biases));
    return cost;
  }
};

}  // namespace

template <>
const HeadScheme& head_scheme<Scores::kLatent>() {
  static const LatentScheme scheme;
  return scheme;
}

}  // namespace mh
