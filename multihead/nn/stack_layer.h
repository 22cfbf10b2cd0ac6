// StackLayer: one layer of a stack: self-attention, cross-attention if the stack has a memory, and
// feed-forward, each with its residual connection. It runs whole sequences, or new rows against a cache.
#pragma once

#include <memory>
#include <string>

#include "multihead/nn/feed_forward.h"
#include "multihead/nn/multi_head_attention.h"
#include "multihead/nn/norm_layer.h"
#include "multihead/nn/stack_cache.h"
#include "multihead/nn/stack_config.h"

namespace mh {

/// What cross-attention reads: rows [Nk, d_model] and the sequences that they belong to.
struct Memory {
  Var rows;
  const Sequences* sequences = nullptr;
};

class StackLayer {
 public:
  /// `number`: its place in the stack, from 0.
  StackLayer(const StackConfig& config, int number, DropoutStreams& streams);

  /// [N, d_model] -> [N, d_model]. memory: null without cross-attention.
  Var forward(Context& context, Var x, const Sequences& rows, const Memory* memory) const;

  /// Puts the keys and values of the memory [Nk, d_model] into this layer's part of the cache, and sets what its rows are
  /// like.
  void start(Context& context, const Memory* memory, CacheType type, StackCache::Layer& own) const;
  /// Runs the new rows x [N, d_model] against all rows that their sequences have read.
  Var extend(Context& context, Var x, StackCache::Layer& own, const StackCache& cache) const;

  void initialise(Random& random);
  void visit(const std::string& name, const ParameterVisitor& visitor);
  /// Calls the visitor with the layer's sites, in the order of forward().
  void visit_sites(const SiteVisitor& visitor) const;
  /// Null without cross-attention.
  MultiHeadAttention* cross_attention() { return cross_ ? &cross_->attention : nullptr; }
  MultiHeadAttention& self_attention() { return self_attention_; }
  const MultiHeadAttention& self_attention() const { return self_attention_; }
  const MultiHeadAttention* cross_attention() const { return cross_ ? &cross_->attention : nullptr; }

 private:
  struct Cross {
    MultiHeadAttention attention;
    Residual residual;
  };
  /// What the model goes on with at a site of this layer.
  Var at(const Context& context, SitePart part, Var value, const RowPlaces& places) const {
    return context.at({name_, part}, {.value = value, .rows = places});
  }
  Residual::Scales scales_of(SitePart norm, SitePart output_norm, const RowPlaces& places) const {
    return {{{name_, norm}, places}, {{name_, output_norm}, places}};
  }
  Residual::Scales self_scales(const RowPlaces& places) const {
    return scales_of(SitePart::kSelfNormScale, SitePart::kSelfOutputNormScale, places);
  }
  Residual::Scales cross_scales(const RowPlaces& places) const {
    return scales_of(SitePart::kCrossNormScale, SitePart::kCrossOutputNormScale, places);
  }
  /// x with the output of attention added to it: W^O of the heads.
  Var attended(Context& context, const MultiHeadAttention& attention, const Residual& residual, Var heads,
               Var x, const Sequences& rows, const RowPlaces& places) const;
  /// x with the output of the feed-forward layer added to it, which reads x, or with parallel sublayers the layer's input or
  /// what attention read of it. input: the layer's, and what attention read.
  struct LayerInput {
    Var x, normed;
  };
  Var feed_forward(Context& context, Var x, const LayerInput& input, const Sequences& rows,
                   const RowPlaces& places) const;

  std::string name_;  // "encoder.3"
  SublayerOrder order_;
  MultiHeadAttention self_attention_;
  Residual self_residual_;
  std::unique_ptr<Cross> cross_;
  FeedForward feed_forward_;
  Residual feed_forward_residual_;
};

}  // namespace mh
