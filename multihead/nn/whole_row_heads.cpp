// q_i = x W_i^Q,  k_i = x W_i^K,  v_i = x W_i^V: every head reads the whole row. W^Q = [W_1^Q | ... | W_h^Q]
// is one matrix because one product is faster than h. With tied scores W^K is W^Q; with fewer key or value
// heads several query heads read the same ones.
#include "multihead/nn/heads.h"
#include "multihead/nn/initialise.h"

namespace mh {
namespace {

class WholeRowHeads final : public Heads {
 public:
  WholeRowHeads(const HeadGeometry& g, int d_model)
      : geometry_(g),
        tied_(g.scores == Scores::kTied),
        biased_(g.biases == Biases::kAll),
        w_q_(d_model, int64_t{g.heads} * g.d_key),
        w_k_(tied_ ? Parameter() : Parameter(d_model, int64_t{g.key_heads} * g.d_key)),
        w_v_(d_model, int64_t{g.value_heads} * g.d_value),
        b_q_(1, w_q_.value.cols()),
        b_k_(tied_ ? Parameter() : Parameter(1, w_k_.value.cols())),
        b_v_(1, w_v_.value.cols()),
        all_(tied_ ? Affine({&w_q_, &w_v_}, biases_or_none(g.biases, {&b_q_, &b_v_}))
                   : Affine({&w_q_, &w_k_, &w_v_}, biases_or_none(g.biases, {&b_q_, &b_k_, &b_v_}))),
        queries_({&w_q_}, biases_or_none(g.biases, {&b_q_})),
        memory_(tied_ ? Affine({&w_q_, &w_v_}, biases_or_none(g.biases, {&b_q_, &b_v_}))
                      : Affine({&w_k_, &w_v_}, biases_or_none(g.biases, {&b_k_, &b_v_}))) {}

  HeadShape shape() const override {
    return {geometry_.heads, geometry_.key_heads, geometry_.value_heads,
            geometry_.d_key, geometry_.d_value,   *geometry_.scale};
  }
  Projected project(Context& context, Var x) const override {
    Tape& tape = context.tape;
    const Var all = affine(tape, x, all_);
    const int64_t q = w_q_.value.cols(), k = q + w_k_.value.cols();
    const Var queries = tape.columns(all, 0, q);
    return {queries, tied_ ? queries : tape.columns(all, q, k), tape.columns(all, k, all.cols())};
  }
  Var queries(Context& context, Var x) const override { return affine(context.tape, x, queries_); }
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
      if (geometry_.initialisation == HeadInitialisation::kCopiedKeys) copy(w_q_, w_k_);
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
  Affine all_, queries_, memory_;
};

}  // namespace

std::unique_ptr<Heads> make_whole_row_heads(const HeadGeometry& geometry, int d_model) {
  return std::make_unique<WholeRowHeads>(geometry, d_model);
}

}  // namespace mh
