// Query-key normalisation (Henry et al. 2020): scores are g * cos(q, k). Queries and keys of any heads are
// scaled to length 1, queries times a learned g, which stands in the place of 1 / sqrt(d_key).
#include "multihead/autograd/normalise_heads.h"
#include "multihead/nn/heads.h"
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
  Projected project(Context& context, Var x) const override {
    const Projected p = heads_->project(context, x);
    return {scaled_queries(context, p.q), unit_keys(context, p.k), p.v};
  }
  Var queries(Context& context, Var x) const override {
    return scaled_queries(context, heads_->queries(context, x));
  }
  KeysValues keys_and_values(Context& context, Var memory) const override {
    const KeysValues both = heads_->keys_and_values(context, memory);
    return {unit_keys(context, both.k), both.v};
  }
  void initialise(Random& random) override {
    heads_->initialise(random);
    fill(factor_, start_);
  }
  void visit(const std::string& name, const ParameterVisitor& visitor) override {
    heads_->visit(name, visitor);
    visitor(name + ".score_factor", factor_);
  }

 private:
  Var scaled_queries(Context& context, Var q) const {
    return normalise_heads(context.tape, q, heads_->shape().heads, &factor_);
  }
  Var unit_keys(Context& context, Var k) const {
    return normalise_heads(context.tape, k, heads_->shape().key_heads);
  }

  std::unique_ptr<Heads> heads_;
  float start_;
  Parameter factor_;  // g
};

}  // namespace

std::unique_ptr<Heads> make_normalised_heads(std::unique_ptr<Heads> heads, const HeadGeometry& geometry) {
  return std::make_unique<NormalisedHeads>(std::move(heads), *geometry.scale);
}

}  // namespace mh
