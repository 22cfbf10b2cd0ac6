// (x_a W_i) . x_b: one matrix W_i [d, d] a head stands for W_i^Q W_i^K^T. The keys are the input itself, one
// head of them shared by all; only values are projected. The bias c_i stands for b_i^Q W_i^K^T; b_i^K would
// cancel in the softmax. The scale stays the geometry's, 1 / sqrt(d_key), so that scores compare.
#include "multihead/nn/heads.h"

namespace mh {
namespace {

class MergedHeads final : public Heads {
 public:
  MergedHeads(const HeadGeometry& g, int d_model)
      : geometry_(g),
        d_model_(d_model),
        biased_(g.biases == Biases::kAll),
        w_(d_model, int64_t{g.heads} * d_model),
        w_v_(d_model, int64_t{g.heads} * g.d_value),
        c_(1, w_.value.cols()),
        b_v_(1, w_v_.value.cols()),
        queries_({&w_}, biases_or_none(g.biases, {&c_})),
        values_({&w_v_}, biases_or_none(g.biases, {&b_v_})) {}

  HeadShape shape() const override {
    return {geometry_.heads, 1, geometry_.heads, d_model_, geometry_.d_value, *geometry_.scale};
  }
  Projected project(Context& context, Var x) const override {
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

}  // namespace

std::unique_ptr<Heads> make_merged_heads(const HeadGeometry& geometry, int d_model) {
  return std::make_unique<MergedHeads>(geometry, d_model);
}

}  // namespace mh
