// q_i = (x W^Q) W_i^Q, and so for keys and values: a d_model x d_model before each head's matrix. The product
// of the two is one matrix, so nothing more can be said with it; what differs is the path of training (claim
// 002.5).
#include "multihead/nn/initialise.h"
#include "multihead/nn/separate_projections.h"

namespace mh {
namespace {

/// x -> x W W', W [d_model, d_model], W' [d_model, heads * size].
struct DoubledProjection {
  DoubledProjection(int d_model, int heads, int size, Biases biases)
      : before(d_model, d_model),
        weight(d_model, int64_t{heads} * size),
        bias(1, weight.value.cols()),
        biased(biases == Biases::kAll),
        first({&before}, {}),
        second({&weight}, biases_or_none(biases, {&bias})) {}
  DoubledProjection(const DoubledProjection&) = delete;
  DoubledProjection& operator=(const DoubledProjection&) = delete;

  Var apply(Context& context, Var x) const {
    return affine(context.tape, affine(context.tape, x, first), second);
  }
  void initialise(const HeadGeometry& geometry, int heads, Random& random) {
    xavier_uniform(before, random, before.value.rows(), before.value.cols());
    initialise_heads(geometry, weight, heads, 3 * weight.value.cols(), random);
  }
  void copy_from(const DoubledProjection& other) {
    copy(other.before, before);
    copy(other.weight, weight);
  }
  void visit(const std::string& name, const char* letter, const ParameterVisitor& visitor) {
    visitor(name + ".w_before_" + letter, before);
    visitor(name + ".w_" + letter, weight);
    if (biased) visitor(name + ".b_" + letter, bias);
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
    if (geometry_.initialisation == HeadInitialisation::kCopiedKeys) k_.copy_from(q_);
  }
};

}  // namespace

std::unique_ptr<Heads> make_doubled_heads(const HeadGeometry& geometry, int d_model) {
  return std::make_unique<DoubledHeads>(geometry, d_model);
}

}  // namespace mh
