// NormLayer: a norm with its parameters. Residual: the residual connection around a sublayer, with its
// dropout and norm.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "multihead/autograd/affine.h"
#include "multihead/autograd/norm_scale.h"
#include "multihead/nn/context.h"
#include "multihead/nn/initialise.h"
#include "multihead/nn/stack_config.h"

namespace mh {

/// Where the scale of a norm is a site.
struct NormSite {
  Site scale;
  const RowPlaces& places;
};

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
  /// The same, with its scale at a site; where that is changed, it is no longer one op.
  Var forward(const Context& context, Var x, const NormSite& site) const {
    if (!context.wants(site.scale)) return forward(context, x);
    const Var scale = norm_scale(context.tape, x, parameters());
    const Var found = context.at(site.scale, {.value = scale, .rows = site.places});
    return found == scale ? forward(context, x) : scaled_norm(context.tape, x, found, parameters());
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

  /// Where its norms' scales are sites.
  struct Scales {
    NormSite norm, output_norm;
  };
  /// The input of the sublayer: x, or Norm(x) where placement has a norm before.
  Var before(Context& context, Var x, const Scales& scales) const {
    x = context.tape.read_from_stream(x);
    return norm_ && placement_ != NormPlacement::kPost ? norm_->forward(context, x, scales.norm) : x;
  }
  /// x + dropout(h W + b), with the norm after it for kPost, as one op; or x + dropout(Norm(h W + b)) where placement has a norm
  /// of the output. W and b are `last`; when it is null, h is taken in place of h W + b.
  Var after(Context& context, Var h, const Affine* last, Var x, const Sequences& rows,
            const Scales& scales) const {
    if (output_norm_) {
      h = output_norm_->forward(context, last != nullptr ? affine(context.tape, h, *last) : h,
                                scales.output_norm);
      last = nullptr;
    }
    const bool asked = placement_ == NormPlacement::kPost && context.wants(scales.norm.scale);
    const NormParameters norm = norm_ ? norm_->parameters() : NormParameters();
    const NormParameters* after = placement_ == NormPlacement::kPost && !asked ? &norm : nullptr;
    const Dropout drops = dropout_at(context, rate_, stream_, rows);
    const Var sum = last != nullptr ? affine_residual(context.tape, h, *last, x, drops, after)
                                    : add_residual(context.tape, h, x, drops, after);
    return asked ? norm_->forward(context, sum, scales.norm) : sum;
  }
  /// Calls the visitor with the sites of its norms' scales.
  void visit_sites(const Site& norm, const Site& output_norm, const SiteVisitor& visitor) const {
    if (norm_) visitor(SiteShape::of(norm, 1));
    if (output_norm_) visitor(SiteShape::of(output_norm, 1));
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
