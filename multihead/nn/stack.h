// THE STACK: the layers of any Transformer, told by a StackConfig what they are. One layer, with norms behind
// (the paper's) or before:
//
//   x = Norm(x + SelfAttention(x))                    x = x + SelfAttention(Norm(x))
//   x = Norm(x + CrossAttention(x, memory))           x = x + CrossAttention(Norm(x), memory)
//   x = Norm(x + FeedForward(x))                      x = x + FeedForward(Norm(x))
//
// Shapes: x [N, d_model], rows of all sequences one behind the other; the memory [Nk, d_model]. Vaswani et
// al. 2017, section 3; norms before: Xiong et al. 2020.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "multihead/nn/stack_layer.h"

namespace mh {

/// Called for every attention, in order.
using AttentionVisitor = std::function<void(const MultiHeadAttention& attention)>;

class Stack {
 public:
  /// Throws UsageError when a layer cannot be.
  Stack(const StackConfig& config, DropoutSites& sites);

  const StackConfig& config() const { return config_; }

  /// [N, d_model] -> [N, d_model]. memory: null without cross-attention.
  Var forward(Context& context, Var x, const Sequences& rows, const Memory* memory = nullptr) const;

  /// A cache that has read nothing but the memory. Keeps the memory of an earlier use.
  void start(Context& context, const Memory* memory, StackCache& cache) const;
  /// Reads x [N, d_model] behind what the cache's sequences have read, one row of each or many at once; the
  /// same states as forward() gives these rows. REQUIRES: a causal or window mask; a tape that does not
  /// record.
  Var extend(Context& context, Var x, const NewRows& rows, StackCache& cache) const;

  void initialise(Random& random);
  /// Names begin with the stack's.
  void visit(const ParameterVisitor& visitor);
  void visit_attentions(const AttentionVisitor& visitor) const;
  /// By its name; null when there is no such attention.
  MultiHeadAttention* find_attention(std::string_view name);

 private:
  Var finished(Context& context, Var x) const { return end_ ? end_->forward(context, x) : x; }

  StackConfig config_;
  std::deque<StackLayer> layers_;
  std::unique_ptr<NormLayer> end_;
};

}  // namespace mh
