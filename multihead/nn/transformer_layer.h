// What encoder and decoder layers have in common.
#pragma once

#include <cstdint>
#include <string>

#include "multihead/autograd/affine.h"
#include "multihead/kernels/elementwise.h"
#include "multihead/nn/context.h"
#include "multihead/nn/head_geometry.h"
#include "multihead/nn/initialise.h"
#include "multihead/nn/positions.h"

namespace mh {

/// kPost: LayerNorm(x + Sublayer(x)), the paper's. kPre: x + Sublayer(LayerNorm(x)), and a norm at the end of
/// the stack.
enum class NormPlacement { kPost, kPre };

/// Shares of positions set to 0 in training.
struct DropoutRates {
  float residual = 0.1f;  // outputs of sublayers, and embeddings
  float weights = 0;      // attention weights
  float activation = 0;   // the feed-forward layer's hidden values
};

struct TransformerLayerConfig {
  int d_model = 512;
  HeadGeometry geometry = {};
  Positions positions = Positions::kSinusoidal;
  int layer = 0;  // which of the stack
  int d_ff = 2048;
  Activation activation = Activation::kRelu;
  NormPlacement norm = NormPlacement::kPost;
  DropoutRates dropout;
};

/// Hands out the numbers of dropout sites while a model is built, in a fixed order.
class DropoutSites {
 public:
  uint32_t next() { return next_++; }

 private:
  uint32_t next_ = 0;
};

/// Gain [1, d] starting at 1 and bias [1, d] at 0.
class LayerNorm {
 public:
  explicit LayerNorm(int64_t d_model) : gain_(1, d_model), bias_(1, d_model) { fill(gain_, 1); }
  NormParameters parameters() const { return {&gain_, &bias_}; }
  void visit(const std::string& name, const ParameterVisitor& visitor) {
    visitor(name + ".gain", gain_);
    visitor(name + ".bias", bias_);
  }

 private:
  Parameter gain_, bias_;
};

/// What a residual connection adds to and how: dropout, and where the norm stands.
class Residual {
 public:
  Residual(const TransformerLayerConfig& config, DropoutSites& sites)
      : placement_(config.norm), rate_(config.dropout.residual), site_(sites.next()), norm_(config.d_model) {}

  /// What the sublayer reads: x itself, or its norm before it (kPre).
  Var before(Context& context, Var x) const {
    return placement_ == NormPlacement::kPre ? normalise(context.tape, x, norm_.parameters()) : x;
  }
  /// x + dropout(h W + b), and the norm after it (kPost), as one op; without `last`, h stands for h W + b.
  Var after(Context& context, Var h, const Affine* last, Var x, const Sequences& rows) const {
    const NormParameters norm = norm_.parameters();
    const NormParameters* after = placement_ == NormPlacement::kPost ? &norm : nullptr;
    const Dropout drops = dropout_at(context, rate_, site_, rows);
    return last != nullptr ? affine_residual(context.tape, h, *last, x, drops, after)
                           : add_residual(context.tape, h, x, drops, after);
  }
  void visit(const std::string& name, const ParameterVisitor& visitor) { norm_.visit(name, visitor); }

 private:
  NormPlacement placement_;
  float rate_;
  uint32_t site_;
  LayerNorm norm_;
};

}  // namespace mh
