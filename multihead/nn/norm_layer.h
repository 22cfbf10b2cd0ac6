// NormLayer: a norm with its parameters. Residual: the residual connection around a sublayer, with its
// dropout and norm.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "multihead/autograd/affine.h"
#include "multihead/nn/context.h"
#include "multihead/nn/initialise.h"
#include "multihead/nn/stack_config.h"

namespace mh {

/// The gain [1, d] starts at 1; a layer norm may also have a bias [1, d], which starts at 0.
class NormLayer {
 public:
  NormLayer(const NormConfig& config, int64_t d_model)
      : kind_(config.kind),
        epsilon_(config.epsilon),
        gain_(1, d_model),
        bias_(kind_ == NormKind::kLayer && config.biases == Biases::kAll ? Parameter(1, d_model)
                                                                         : Parameter()) {
    fill_with(gain_, 1);
  }
  NormLayer(const NormLayer&) = delete;
  NormLayer& operator=(const NormLayer&) = delete;

  NormParameters parameters() const {
    return {.gain = &gain_,
            .bias = bias_.value.size() > 0 ? &bias_ : nullptr,
            .kind = kind_,
            .epsilon = epsilon_};
  }
  Var forward(const Context& context, Var x, const Dropout& dropout = {}) const {
    return normalise(context.tape, x, parameters(), dropout);
  }
  void visit(const std::string& name, const ParameterVisitor& visitor) {
    visitor(name + ".gain", gain_);
    if (bias_.value.size() > 0) visitor(name + ".bias", bias_);
  }

 private:
  NormKind kind_;
  float epsilon_;
  Parameter gain_, bias_;
};

/// Adds the output of a sublayer to its input x; norm before the sublayer (kPre) or after the sum (kPost).
class Residual {
 public:
  /// normed: no leaves out the norm before the sublayer.
  Residual(const StackConfig& config, DropoutStreams& streams, bool normed = true)
      : placement_(config.norm.placement), rate_(config.dropout.residual), stream_(streams.next()) {
    if (normed || placement_ == NormPlacement::kPost) norm_.emplace(config.norm, config.d_model);
  }

  /// The input of the sublayer: x, or Norm(x) with kPre.
  Var before(Context& context, Var x) const {
    return norm_ && placement_ == NormPlacement::kPre ? norm_->forward(context, x) : x;
  }
  /// x + dropout(h W + b), with the norm after it for kPost, as one op. W and b are `last`; when it is
  /// null, h is taken in place of h W + b.
  Var after(Context& context, Var h, const Affine* last, Var x, const Sequences& rows) const {
    const NormParameters norm = norm_ ? norm_->parameters() : NormParameters();
    const NormParameters* after = placement_ == NormPlacement::kPost ? &norm : nullptr;
    const Dropout drops = dropout_at(context, rate_, stream_, rows);
    return last != nullptr ? affine_residual(context.tape, h, *last, x, drops, after)
                           : add_residual(context.tape, h, x, drops, after);
  }
  void visit(const std::string& name, const ParameterVisitor& visitor) {
    if (norm_) norm_->visit(name, visitor);
  }

 private:
  NormPlacement placement_;
  float rate_;
  uint32_t stream_;
  std::optional<NormLayer> norm_;
};

}  // namespace mh
