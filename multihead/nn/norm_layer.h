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

/// Adds the output of a sublayer to its input x, with the norms that NormPlacement says.
class Residual {
 public:
  /// normed: no leaves out the norm before the sublayer.
  Residual(const StackConfig& config, DropoutStreams& streams, bool normed = true)
      : placement_(config.norm.placement), rate_(config.dropout.residual), stream_(streams.next()) {
    if (placement_ == NormPlacement::kPost || (normed && norms_input(placement_)))
      norm_.emplace(config.norm, config.d_model);
    if (norms_output(placement_)) output_norm_.emplace(config.norm, config.d_model);
  }

  /// The input of the sublayer: x, or Norm(x) where placement has a norm before.
  Var before(Context& context, Var x) const {
    return norm_ && placement_ != NormPlacement::kPost ? norm_->forward(context, x) : x;
  }
  /// x + dropout(h W + b), with the norm after it for kPost, as one op; or x + dropout(Norm(h W + b)) where placement has a norm
  /// of the output. W and b are `last`; when it is null, h is taken in place of h W + b.
  Var after(Context& context, Var h, const Affine* last, Var x, const Sequences& rows) const {
    if (output_norm_) {
      h = output_norm_->forward(context, last != nullptr ? affine(context.tape, h, *last) : h);
      last = nullptr;
    }
    const NormParameters norm = norm_ ? norm_->parameters() : NormParameters();
    const NormParameters* after = placement_ == NormPlacement::kPost ? &norm : nullptr;
    const Dropout drops = dropout_at(context, rate_, stream_, rows);
    return last != nullptr ? affine_residual(context.tape, h, *last, x, drops, after)
                           : add_residual(context.tape, h, x, drops, after);
  }
  /// Visits "NAME_norm.gain", "NAME_output_norm.gain", and biases. name: the sublayer's.
  void visit(const std::string& name, const ParameterVisitor& visitor) {
    if (norm_) norm_->visit(name + "_norm", visitor);
    if (output_norm_) output_norm_->visit(name + "_output_norm", visitor);
  }

 private:
  NormPlacement placement_;
  float rate_;
  uint32_t stream_;
  std::optional<NormLayer> norm_, output_norm_;
};

}  // namespace mh
