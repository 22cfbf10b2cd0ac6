// q_i = x[:, c_i] W_i^Q and so on: head i reads the columns c_i of a row only, a slice or any others (Bloem's
// narrow self-attention; Deil's segments). Every such head is a canonical one whose W_i has rows of zeros. In
// the fourth form the columns are those of x W, another d_model x d_model before.
#include "multihead/nn/initialise.h"
#include "multihead/nn/separate_projections.h"

namespace mh {
namespace {

/// One of the three projections.
class SegmentProjection {
 public:
  SegmentProjection(const HeadGeometry& g, const HeadColumns& columns, int d_model, int size)
      : biased_(g.biases == Biases::kAll),
        before_(g.input.kind == HeadInput::Kind::kProjectedSlices ? Parameter(d_model, d_model)
                                                                  : Parameter()),
        weight_(g.input.one_for_all ? static_cast<int64_t>(columns[0].size()) : all_of(columns), size),
        bias_(1, int64_t{g.heads} * size),
        heads_(columns, &weight_, biased_ ? &bias_ : nullptr) {
    if (before_.value.size() > 0) first_ = Affine({&before_}, {});
  }
  SegmentProjection(const SegmentProjection&) = delete;
  SegmentProjection& operator=(const SegmentProjection&) = delete;

  Var apply(Context& context, Var x) const {
    if (before_.value.size() > 0) x = affine(context.tape, x, first_);
    return head_affine(context.tape, x, heads_);
  }
  void initialise(const HeadGeometry& geometry, Random& random) {
    if (before_.value.size() > 0) xavier_uniform(before_, random, before_.value.rows(), before_.value.cols());
    // Each head's own fans: there is no whole matrix here that others would share.
    const int64_t columns = weight_.value.cols();
    std::vector<MatrixView> blocks;
    for (int h = 0; h < heads_.heads(); ++h) {
      const HeadAffine::Rows rows = heads_.rows(h);
      Parameter one(rows.end - rows.begin, columns);
      initialise_heads(geometry, one, 1, columns, random);
      for (int64_t r = rows.begin; r < rows.end; ++r) {
        for (int64_t c = 0; c < columns; ++c) weight_.value(r, c) = one.value(r - rows.begin, c);
      }
      blocks.push_back(weight_.value.view().rows_between(rows.begin, rows.end));
      if (geometry.input.one_for_all) break;
    }
    make_equal(geometry, blocks, random);
    weight_.changed();
  }
  void visit(const std::string& name, const char* letter, const ParameterVisitor& visitor) {
    if (before_.value.size() > 0) visitor(name + ".w_before_" + letter, before_);
    visitor(name + ".w_" + letter, weight_);
    if (biased_) visitor(name + ".b_" + letter, bias_);
  }

 private:
  static int64_t all_of(const HeadColumns& columns) {
    int64_t all = 0;
    for (const auto& head : columns) all += static_cast<int64_t>(head.size());
    return all;
  }

  bool biased_;
  Parameter before_, weight_, bias_;
  Affine first_;
  HeadAffine heads_;
};

class SegmentHeads final : public SeparateProjections<SegmentProjection> {
 public:
  SegmentHeads(const HeadGeometry& g, int d_model)
      : SeparateProjections(g, [&](int, int size) {
          return SegmentProjection(
              g,
              g.input.kind == HeadInput::Kind::kColumns ? g.input.columns : slice_columns(g.heads, d_model),
              d_model, size);
        }) {}

  void initialise(Random& random) override {
    for (SegmentProjection* projection : {&q_, &k_, &v_}) projection->initialise(geometry_, random);
  }
};

}  // namespace

std::unique_ptr<Heads> make_segment_heads(const HeadGeometry& geometry, int d_model) {
  return std::make_unique<SegmentHeads>(geometry, d_model);
}

}  // namespace mh
