// q_i = x W_i^Q,  k_i = x W_i^K,  v_i = x W_i^V: every head reads the whole row. W^Q = [W_1^Q | ... | W_h^Q]
// is one matrix because one product is faster than h. With tied scores W^K is W^Q; with fewer key or value
// heads several query heads read the same ones. Tied keys cost nothing in self-attention, where they are
// the queries; elsewhere they cost no parameters.
#include "multihead/kernels/attention.h"
#include "multihead/nn/head_scheme.h"
#include "multihead/nn/initialise.h"

namespace mh {
namespace {

class WholeRowHeads final : public Heads {
 public:
  WholeRowHeads(const HeadGeometry& g, int d_model)
      : geometry_(g),
        tied_(g.scores == Scores::kTied),
        biased_(has_bias_of_heads(g.biases)),
        w_q_(d_model, int64_t{g.heads} * g.d_key),
        w_k_(tied_ ? Parameter() : Parameter(d_model, int64_t{g.key_heads} * g.d_key)),
        w_v_(d_model, int64_t{g.value_heads} * g.d_value),
        b_q_(1, w_q_.value.cols()),
        b_k_(tied_ ? Parameter() : Parameter(1, w_k_.value.cols())),
        b_v_(1, w_v_.value.cols()),
        all_(tied_ ? Affine({&w_q_, &w_v_}, biases_or_none(g.biases, {&b_q_, &b_v_}))
                   : Affine({&w_q_, &w_k_, &w_v_}, biases_or_none(g.biases, {&b_q_, &b_k_, &b_v_}))),
        queries_({&w_q_}, biases_or_none(g.biases, {&b_q_})),
        keys_(tied_ ? Affine({&w_q_}, biases_or_none(g.biases, {&b_q_}))
                    : Affine({&w_k_}, biases_or_none(g.biases, {&b_k_}))),
        memory_(tied_ ? Affine({&w_q_, &w_v_}, biases_or_none(g.biases, {&b_q_, &b_v_}))
                      : Affine({&w_k_, &w_v_}, biases_or_none(g.biases, {&b_k_, &b_v_}))) {}

  HeadShape shape() const override {
    return {geometry_.heads, geometry_.key_heads, geometry_.value_heads,
            geometry_.d_key, geometry_.d_value,   *geometry_.scale};
  }
  ProjectedHeads project(Context& context, Var x) const override {
    Tape& tape = context.tape;
    const Var all = affine(tape, x, all_);
    const int64_t q = w_q_.value.cols(), k = q + w_k_.value.cols();
    const Var queries = tape.columns(all, 0, q);
    return {queries, tied_ ? queries : tape.columns(all, q, k), tape.columns(all, k, all.cols())};
  }
  Var queries(Context& context, Var x) const override { return affine(context.tape, x, queries_); }
  Var keys(Context& context, Var x) const override { return affine(context.tape, x, keys_); }
  KeysValues keys_and_values(Context& context, Var memory) const override {
    const Var both = affine(context.tape, memory, memory_);
    const int64_t v = both.cols() - w_v_.value.cols();
    return {context.tape.columns(both, 0, v), context.tape.columns(both, v, both.cols())};
  }
  void initialise(Random& random) override {
    const int64_t packed = all_.outputs();
    initialise_heads(geometry_, w_q_, geometry_.heads, packed, random);
    if (!tied_) {
      initialise_heads(geometry_, w_k_, geometry_.key_heads, packed, random);
      if (geometry_.initialisation == HeadInitialisation::kCopiedKeys) copy_values(w_q_, w_k_);
    }
    initialise_heads(geometry_, w_v_, geometry_.value_heads, packed, random);
  }
  void visit(const std::string& name, const ParameterVisitor& visitor) override {
    const auto pair = [&](const char* weight, Parameter& w, const char* bias, Parameter& b) {
      visitor(name + weight, w);
      if (biased_) visitor(name + bias, b);
    };
    pair(".w_q", w_q_, ".b_q", b_q_);
    if (!tied_) pair(".w_k", w_k_, ".b_k", b_k_);
    pair(".w_v", w_v_, ".b_v", b_v_);
  }

 private:
  HeadGeometry geometry_;
  bool tied_, biased_;
  Parameter w_q_, w_k_, w_v_;
  Parameter b_q_, b_k_, b_v_;
  Affine all_, queries_, keys_, memory_;
};

class WholeRowScheme : public HeadScheme {
 public:
  std::unique_ptr<Heads> make(const HeadGeometry& g, int d_model) const override {
    return std::make_unique<WholeRowHeads>(g, d_model);
  }
  bool heads_lie_side_by_side() const override { return true; }
};

class QueryKeyHeadsScheme final : public WholeRowScheme {
 public:
  bool copies_queries() const override { return true; }
  std::vector<GeometryPreset> presets() const override {
    return {
        {{"canonical", "every head reads the whole row (Vaswani et al. 2017)"},
         [](int h, int) { return HeadGeometry{.heads = h}; }},
        {{"tensor2tensor", "canonical without biases"},
         [](int h, int) { return HeadGeometry{.heads = h, .biases = Biases::kNone}; }},
        {{"bloem-wide", "every head as wide as the row, d_key = d_model"},
         [](int h, int d) {
           return HeadGeometry{
               .heads = h, .d_key = d, .d_value = d, .biases = Biases::kNone, .scale = attention_scale(d)};
         }},
        {{"aggcn", "canonical, W^K starts as a copy of W^Q (Guo et al. 2019)"},
         [](int h, int) {
           return HeadGeometry{.heads = h, .initialisation = HeadInitialisation::kCopiedKeys};
         }},
        {{"multi-query", "all heads share one head of keys and values (Shazeer 2019)"},
         [](int h, int) { return HeadGeometry{.heads = h, .key_heads = 1}; }},
        {{"grouped-query", "pairs of heads share keys and values (Ainslie et al. 2023)"},
         [](int h, int) { return HeadGeometry{.heads = h, .key_heads = h % 2 == 0 ? h / 2 : h}; }}};
  }
};

class TiedScheme final : public WholeRowScheme {
 public:
  void find_problems(const HeadGeometry& g, int, std::vector<std::string>& found) const override {
    if (!has_own_keys(g)) found.push_back("tied scores take the keys of every head; set key_heads to 0");
  }
  std::vector<GeometryPreset> presets() const override {
    return {{{"tied", "W^K is W^Q: scores are symmetric"},
             [](int h, int) { return HeadGeometry{.heads = h, .scores = Scores::kTied}; }}};
  }
  HeadMatrix head_matrix(const LayerWeights& layer, HeadPart part, int head) const override {
    return WholeRowScheme::head_matrix(layer, of(part), head);
  }
  std::string formula(const TraceNames& names, HeadPart part, const std::string& rows,
                      int head) const override {
    return WholeRowScheme::formula(names, of(part), rows, head);
  }
  LedgerPart cost(const HeadGeometry& g, HeadPart part, const ProjectedRows& rows) const override {
    if (part == HeadPart::kKeys && rows.own_rows) return {};
    LedgerPart cost = WholeRowScheme::cost(g, part, rows);
    if (part == HeadPart::kKeys) cost.parameters = 0;  // the queries'
    return cost;
  }

 private:
  /// Whose matrix a part is projected by.
  static HeadPart of(HeadPart part) { return part == HeadPart::kKeys ? HeadPart::kQueries : part; }
};

}  // namespace

template <>
const HeadScheme& head_scheme<Scores::kQueryKey>() {
  static const QueryKeyHeadsScheme scheme;
  return scheme;
}

template <>
const HeadScheme& head_scheme<Scores::kTied>() {
  static const TiedScheme scheme;
  return scheme;
}

}  // namespace mh
