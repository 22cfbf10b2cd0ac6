#include "multihead/nn/attention_positions.h"

#include <cmath>
#include <vector>

#include "multihead/autograd/head_affine.h"
#include "multihead/autograd/ops.h"
#include "multihead/autograd/rotary.h"
#include "multihead/nn/initialise.h"

namespace mh {
namespace {

class RotaryPositions final : public AttentionPositions {
 public:
  RotaryPositions(int d_key, const RotaryOptions& options) : d_key_(d_key), options_(options) {
    options_.scaling.factors = options_.factors;
  }

  Var turned(Context& context, Var rows, int heads, const RowPlaces& places) const override {
    return rotate(context.tape, rows,
                  {.heads = heads,
                   .d_head = d_key_,
                   .rotated = options_.rotated > 0 ? options_.rotated : d_key_,
                   .base = options_.base,
                   .scaling = options_.scaling,
                   .pairs = options_.pairs,
                   .offsets = places.positions.empty() ? places.offsets : std::span<const int32_t>(),
                   .positions = places.positions});
  }

 private:
  int d_key_;
  RotaryOptions options_;
};

class AlibiPositions final : public AttentionPositions {
 public:
  AlibiPositions(int heads, int softmaxes_per_head) {
    for (const float slope : alibi_slopes(heads / softmaxes_per_head)) {
      slopes_.insert(slopes_.end(), static_cast<size_t>(softmaxes_per_head), slope);
    }
  }
  LearnedInputs bias(Context&, const ScoredHeads&, AttentionBias& fixed) const override {
    fixed.slopes = slopes_;
    return {};
  }

 private:
  std::vector<float> slopes_;
};

class T5Positions final : public AttentionPositions {
 public:
  T5Positions(AttentionDirection direction, const T5Buckets& buckets, int heads, int d_model)
      : d_model_(d_model), farthest_(buckets.farthest), table_(heads, buckets.count) {
    for (int distance = -farthest_; distance <= farthest_; ++distance)
      buckets_.push_back(t5_bucket(distance, direction, buckets));
  }
  LearnedInputs bias(Context&, const ScoredHeads&, AttentionBias& fixed) const override {
    fixed.distance_clip = farthest_;
    fixed.distance_columns = static_cast<int>(table_.value.cols());
    fixed.buckets = buckets_;
    return {.by_distance = &table_, .by_query = {}};
  }
  void initialise(Random& random) override {
    fill_normal(table_, random, 1 / std::sqrt(static_cast<double>(d_model_)));  // as transformers starts them
  }
  void visit(const std::string& name, const ParameterVisitor& visitor) override {
    visitor(name + ".distance_bias", table_);
  }

 private:
  int d_model_, farthest_;
  Parameter table_;               // [heads, buckets]
  std::vector<int32_t> buckets_;  // of the distances -farthest ... farthest
};

// score = scale * q . (k + a_distance): what q meets besides k is one product with all vectors.
class ShawPositions final : public AttentionPositions {
 public:
  explicit ShawPositions(const HeadShape& shape)
      : scale_(shape.scale),
        vectors_(shape.d_key, 2 * kShawClip + 1),
        product_(slice_columns(shape.heads, shape.heads * shape.d_key), &vectors_, nullptr) {}

  LearnedInputs bias(Context& context, const ScoredHeads& scored, AttentionBias& fixed) const override {
    fixed.vector_clip = kShawClip;
    const Var products = head_affine(context.tape, scored.q, product_);  // [Nq, H * (2k + 1)]
    return {.by_distance = nullptr, .by_query = ops::scale(context.tape, products, scale_)};
  }
  void initialise(Random& random) override {
    fill_xavier(vectors_, random, vectors_.value.rows(), vectors_.value.cols());
  }
  void visit(const std::string& name, const ParameterVisitor& visitor) override {
    visitor(name + ".distance_keys", vectors_);
  }

 private:
  float scale_;
  Parameter vectors_;  // [d_key, 2k + 1]: a column a distance
  HeadAffine product_;
};

}  // namespace

std::unique_ptr<AttentionPositions> make_attention_positions(
    Positions positions, AttentionDirection direction, const HeadShape& shape, int d_model,
    int softmaxes_per_head, const RotaryOptions& rotary, const T5Buckets& buckets) {
  switch (positions) {
    case Positions::kRotary:
      return std::make_unique<RotaryPositions>(shape.d_key, rotary);
    case Positions::kAlibi:
      return std::make_unique<AlibiPositions>(shape.heads, softmaxes_per_head);
    case Positions::kT5:
      return std::make_unique<T5Positions>(direction, buckets, shape.heads, d_model);
    case Positions::kShaw:
      return std::make_unique<ShawPositions>(shape);
    case Positions::kDisentangled:  // below, since it needs more
    case Positions::kSinusoidal:
    case Positions::kLearned:
    case Positions::kNone:
      break;
  }
  return nullptr;
}

}  // namespace mh
