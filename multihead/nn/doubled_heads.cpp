// q_i = (x W^Q) W_i^Q, and so for keys and values: a d_model x d_model before each head's matrix. The product
// of the two is one matrix, so nothing more can be said with it; what differs is the path of training (claim
// 002.5).
#include "multihead/nn/heads.h"
#include "multihead/nn/initialise.h"

namespace mh {
namespace {

class DoubledHeads final : public Heads {
 public:
  DoubledHeads(const HeadGeometry& g, int d_model)
      : geometry_(g),
        q_(d_model, g.heads, g.d_key, g.biases),
        k_(d_model, g.key_heads, g.d_key, g.biases),
        v_(d_model, g.value_heads, g.d_value, g.biases) {}

  HeadShape shape() const override {
    return {geometry_.heads, geometry_.key_heads, geometry_.value_heads,
            geometry_.d_key, geometry_.d_value,   *geometry_.scale};
  }
  Projected project(Context& context, Var x) override {
    return {q_.apply(context, x), k_.apply(context, x), v_.apply(context, x)};
  }
  Var queries(Context& context, Var x) override { return q_.apply(context, x); }
  KeysValues keys_and_values(Context& context, Var memory) override {
    return {k_.apply(context, memory), v_.apply(context, memory)};
  }
  void initialise(Random& random) override {
    q_.initialise(geometry_, geometry_.heads, random);
    k_.initialise(geometry_, geometry_.key_heads, random);
    v_.initialise(geometry_, geometry_.value_heads, random);
    if (geometry_.initialisation == HeadInitialisation::kCopiedKeys) k_.copy_from(q_);
  }
  void visit(const std::string& name, const ParameterVisitor& visitor) override {
    q_.visit(name, "q", visitor);
    k_.visit(name, "k", visitor);
    v_.visit(name, "v", visitor);
  }

 private:
  /// x -> x W W', W [d_model, d_model], W' [d_model, heads * size].
  struct Projection {
    Projection(int d_model, int heads, int size, Biases biases)
        : before(d_model, d_model),
          weight(d_model, int64_t{heads} * size),
          bias(1, weight.value.cols()),
          biased(biases == Biases::kAll),
          first({&before}, {}),
          second({&weight}, biased ? std::vector<Parameter*>{&bias} : std::vector<Parameter*>{}) {}
    Projection(const Projection&) = delete;
    Projection& operator=(const Projection&) = delete;

    Var apply(Context& context, Var x) {
      return affine(context.tape, affine(context.tape, x, first), second);
    }
    void initialise(const HeadGeometry& geometry, int heads, Random& random) {
      xavier_uniform(before, random, before.value.rows(), before.value.cols());
      initialise_heads(geometry, weight, heads, 3 * weight.value.cols(), random);
    }
    void copy_from(const Projection& other) {
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

  HeadGeometry geometry_;
  Projection q_, k_, v_;
};

}  // namespace

std::unique_ptr<Heads> make_doubled_heads(const HeadGeometry& geometry, int d_model) {
  return std::make_unique<DoubledHeads>(geometry, d_model);
}

}  // namespace mh
