// THE STACK: the layers of any Transformer: encoder, decoder or causal model, as a StackConfig says. One
// layer, with norms after the sublayers (the paper's) or before them:
//
//   x = Norm(x + SelfAttention(x))                    x = x + SelfAttention(Norm(x))
//   x = Norm(x + CrossAttention(x, memory))           x = x + CrossAttention(Norm(x), memory)
//   x = Norm(x + FeedForward(x))                      x = x + FeedForward(Norm(x))
//
// (Vaswani et al. 2017, section 3; norms before: Xiong et al. 2020; NormPlacement and SublayerOrder have more). Shapes: x [N, d_model], the rows of
// all sequences one after the other; the memory, an encoder's output, [Nk, d_model].
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "multihead/nn/attention_place.h"
#include "multihead/nn/stack_layer.h"

namespace mh {

/// Called for every attention, in order.
using AttentionVisitor =
    std::function<void(const MultiHeadAttention& attention, const AttentionPlace& place)>;

class Stack {
 public:
  /// Throws UsageError when a layer cannot be built.
  Stack(const StackConfig& config, DropoutStreams& streams);

  const StackConfig& config() const { return config_; }

  /// Runs whole sequences: [N, d_model] -> [N, d_model], from where context.starts says in place of x. memory: null without
  /// cross-attention.
  Var forward(Context& context, Var x, const Sequences& rows, const Memory* memory = nullptr) const;

  /// Prepares a cache for new sequences: it holds the keys and values of `memory`, and no rows yet.
  void start(Context& context, const Memory* memory, StackCache& cache) const;
  /// Cached decoding: runs new rows x [N, d_model] after the rows that the cache's sequences have read
  /// before, one row of each sequence or many. Returns the same states as forward() gives for these rows.
  /// REQUIRES: a causal or window mask; a tape that does not record.
  Var extend(Context& context, Var x, const NewRows& rows, StackCache& cache) const;

  void initialise(Random& random);
  /// Calls the visitor with every parameter; names begin with the name of the stack.
  void visit(const ParameterVisitor& visitor);
  void visit_attentions(const AttentionVisitor& visitor) const;
  /// Calls the visitor with the sites of the stack and its layers, in the order of forward().
  void visit_sites(const SiteVisitor& visitor) const;
  /// Returns the attention with this name, or null.
  MultiHeadAttention* find_attention(std::string_view name);

 private:
  /// x through run_layer(i, x) of every layer i from `first`.
  template <class Layer>
  Var one_after_another(Context& context, Var x, size_t first, Layer run_layer) const;
  Var begun(const Context& context, Var x, const RowPlaces& places) const {
    return context.at({config_.name, SitePart::kEmbeddings}, {.value = x, .rows = places});
  }
  Var finished(Context& context, Var x, const RowPlaces& places) const {
    const NormSite scale{{config_.name, SitePart::kFinalNormScale}, places};
    return context.at({config_.name, SitePart::kStates},
                      {.value = end_ ? end_->forward(context, x, scale) : x, .rows = places});
  }

  StackConfig config_;
  std::deque<StackLayer> layers_;
  std::unique_ptr<NormLayer> end_;
};

}  // namespace mh
