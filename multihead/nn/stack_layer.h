// One layer of a stack: self-attention, attention to a memory where there is one, and feed-forward, each with
// its residual connection. Whole sequences at once, or new rows against a cache.
#pragma once

#include <memory>
#include <string>

#include "multihead/nn/feed_forward.h"
#include "multihead/nn/multi_head_attention.h"
#include "multihead/nn/norm_layer.h"
#include "multihead/nn/stack_cache.h"
#include "multihead/nn/stack_config.h"

namespace mh {

/// What cross-attention reads: rows [Nk, d_model] of these sequences.
struct Memory {
  Var rows;
  const Sequences* sequences = nullptr;
};

class StackLayer {
 public:
  /// `number`: which of the stack.
  StackLayer(const StackConfig& config, int number, DropoutSites& sites);

  /// [N, d_model] -> [N, d_model]. memory: null without cross-attention.
  Var forward(Context& context, Var x, const Sequences& rows, const Memory* memory) const;

  /// Keys and values of the memory, [Nk, d_model], into the cache; and how wide its own rows will be.
  void start(Context& context, const Memory* memory, StackCache::Layer& own) const;
  /// The cache's new rows, x [N, d_model], against all that their sequences have read.
  Var extend(Context& context, Var x, StackCache::Layer& own, const StackCache& cache) const;

  void initialise(Random& random);
  void visit(const std::string& name, const ParameterVisitor& visitor);
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
  Var feed_forward(Context& context, Var x, const Sequences& rows) const;

  StackMask mask_;
  MultiHeadAttention self_attention_;
  Residual self_residual_;
  std::unique_ptr<Cross> cross_;
  FeedForward feed_forward_;
  Residual feed_forward_residual_;
};

}  // namespace mh
