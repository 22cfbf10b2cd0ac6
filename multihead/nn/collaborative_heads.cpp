// q_i = (x W^Q) * m_i,  k = x W^K for all heads alike: heads share W^Q and W^K [d_model, D_k] and differ by a
// mixing vector m_i [D_k] only (Cordonnier, Loukas and Jaggi 2020). Canonical heads are the case where m_i is
// 1 on head i's own columns and 0 elsewhere. Values are each head's own.
#include <algorithm>

#include "multihead/autograd/mix_heads.h"
#include "multihead/nn/heads.h"
#include "multihead/nn/initialise.h"

namespace mh {
namespace {

class CollaborativeHeads final : public Heads {
 public:
  CollaborativeHeads(const HeadGeometry& g, int d_model)
      : geometry_(g),
        biased_(g.biases == Biases::kAll),
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

  HeadShape shape() const override {
    return {geometry_.heads, 1, geometry_.heads, geometry_.shared_size, geometry_.d_value, *geometry_.scale};
  }
  Projected project(Context& context, Var x) const override {
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
    normal(mixing_, random, equal ? 0 : geometry_.initialisation == kEqualWithNoise ? 1e-6 : 0.5);
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

}  // namespace

std::unique_ptr<Heads> make_collaborative_heads(const HeadGeometry& geometry, int d_model) {
  return std::make_unique<CollaborativeHeads>(geometry, d_model);
}

}  // namespace mh
