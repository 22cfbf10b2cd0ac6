// q_i = x[:, c_i] W_i^Q and so on: head i reads the columns c_i of a row only, a slice or any others (Bloem's
// narrow self-attention; Deil's segments). Every such head is a canonical one whose W_i has rows of zeros. In
// the fourth form the columns are those of x W, another d_model x d_model before.
#include "multihead/nn/heads.h"
#include "multihead/nn/initialise.h"

namespace mh {
namespace {

/// One of the three projections.
class SegmentProjection {
 public:
  SegmentProjection(const HeadGeometry& g, const HeadColumns& columns, int d_model, int size)
      : geometry_(g),
        before_(g.input.kind == HeadInput::Kind::kProjectedSlices ? Parameter(d_model, d_model)
                                                                  : Parameter()),
        weight_(g.input.one_for_all ? static_cast<int64_t>(columns[0].size()) : all_of(columns), size),
        bias_(1, int64_t{g.heads} * size),
        heads_(columns, &weight_, g.biases == Biases::kAll ? &bias_ : nullptr) {
    if (before_.value.size() > 0) first_ = Affine({&before_}, {});
  }
  SegmentProjection(const SegmentProjection&) = delete;
  SegmentProjection& operator=(const SegmentProjection&) = delete;

  Var apply(Context& context, Var x) {
    if (before_.value.size() > 0) x = affine(context.tape, x, first_);
    return head_affine(context.tape, x, heads_);
  }
  void initialise(Random& random) {
    if (before_.value.size() > 0) xavier_uniform(before_, random, before_.value.rows(), before_.value.cols());
    // Each head's own fans: there is no whole matrix here that others would share.
    const int64_t columns = weight_.value.cols();
    for (int h = 0; h < heads_.heads(); ++h) {
      const HeadAffine::Rows rows = heads_.rows(h);
      Parameter one(rows.end - rows.begin, columns);
      initialise_heads(geometry_, one, 1, columns, random);
      for (int64_t r = rows.begin; r < rows.end; ++r) {
        for (int64_t c = 0; c < columns; ++c) weight_.value(r, c) = one.value(r - rows.begin, c);
      }
      if (rows.end == weight_.value.rows() && rows.begin == 0) break;  // one for all
    }
    weight_.changed();
  }
  void visit(const std::string& name, const char* letter, const ParameterVisitor& visitor) {
    if (before_.value.size() > 0) visitor(name + ".w_before_" + letter, before_);
    visitor(name + ".w_" + letter, weight_);
    if (geometry_.biases == Biases::kAll) visitor(name + ".b_" + letter, bias_);
  }

 private:
  static int64_t all_of(const HeadColumns& columns) {
    int64_t all = 0;
    for (const auto& head : columns) all += static_cast<int64_t>(head.size());
    return all;
  }

  const HeadGeometry& geometry_;
  Parameter before_, weight_, bias_;
  Affine first_;
  HeadAffine heads_;
};

class SegmentHeads final : public Heads {
 public:
  SegmentHeads(const HeadGeometry& g, int d_model)
      : geometry_(g),
        columns_(g.input.kind == HeadInput::Kind::kColumns ? g.input.columns
                                                           : slice_columns(g.heads, d_model)),
        q_(geometry_, columns_, d_model, g.d_key),
        k_(geometry_, columns_, d_model, g.d_key),
        v_(geometry_, columns_, d_model, g.d_value) {}

  HeadShape shape() const override {
    return {geometry_.heads, geometry_.heads,   geometry_.heads,
            geometry_.d_key, geometry_.d_value, *geometry_.scale};
  }
  Projected project(Context& context, Var x) override {
    return {q_.apply(context, x), k_.apply(context, x), v_.apply(context, x)};
  }
  Var queries(Context& context, Var x) override { return q_.apply(context, x); }
  KeysValues keys_and_values(Context& context, Var memory) override {
    return {k_.apply(context, memory), v_.apply(context, memory)};
  }
  void initialise(Random& random) override {
    q_.initialise(random);
    k_.initialise(random);
    v_.initialise(random);
  }
  void visit(const std::string& name, const ParameterVisitor& visitor) override {
    q_.visit(name, "q", visitor);
    k_.visit(name, "k", visitor);
    v_.visit(name, "v", visitor);
  }

 private:
  HeadGeometry geometry_;
  HeadColumns columns_;
  SegmentProjection q_, k_, v_;
};

}  // namespace

std::unique_ptr<Heads> make_segment_heads(const HeadGeometry& geometry, int d_model) {
  return std::make_unique<SegmentHeads>(geometry, d_model);
}

}  // namespace mh
