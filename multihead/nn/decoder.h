// The decoder: layers of causal self-attention, attention to the encoder's memory, and feed-forward; whole
// targets at once, or one token at a time over a cache.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "multihead/nn/encoder.h"
#include "multihead/nn/feed_forward.h"
#include "multihead/nn/multi_head_attention.h"
#include "multihead/nn/transformer_layer.h"
#include "multihead/tensor/tensor.h"

namespace mh {

/// One layer's part of a decoder's cache.
struct DecoderLayerCache {
  AlignedBuffer<float> self;  // [rows ever written, keys | values]; grows
  Tensor memory;              // [Nk, keys | values] of the encoder's memory
};

/// Rows of keys and values by number: a hypothesis is the list of its rows, so that reordering copies no
/// keys.
struct DecoderCache {
  std::vector<DecoderLayerCache> layers;
  std::span<const int32_t> memory_offsets;  // [S + 1] rows of each source
  int32_t rows_written = 0;                 // in each layer's `self`
  int32_t steps = 0;
  std::vector<int32_t> paths;  // [hypotheses, steps] row numbers, oldest first
  // Of the step in work; kept here so that steps allocate nothing.
  std::vector<int32_t> next_paths;
  std::vector<int32_t> query_positions;  // the same for all
  Ragged queries_alone;                  // every hypothesis a sequence of one query
  Ragged path_keys;                      // and its path
  Ragged queries_by_source;              // hypotheses of one source together
};

class DecoderLayer {
 public:
  DecoderLayer(const std::string& name, const TransformerLayerConfig& config, DropoutSites& sites);

  /// [Nq, d_model] -> [Nq, d_model]; memory [Nk, d_model] in sequences `memory_rows`.
  Var forward(Context& context, Var x, const Sequences& rows, Var memory, const Sequences& memory_rows) const;

  void start(Context& context, Var memory, std::span<const int32_t> memory_offsets,
             DecoderLayerCache& cache) const;
  Var step(Context& context, Var x, DecoderLayerCache& own, const DecoderCache& cache) const;

  void initialise(Random& random);
  void visit(const std::string& name, const ParameterVisitor& visitor);
  void visit_attentions(const AttentionVisitor& visitor) const;
  MultiHeadAttention& self_attention() { return self_attention_; }
  MultiHeadAttention& cross_attention() { return cross_attention_; }

 private:
  MultiHeadAttention self_attention_;
  Residual self_residual_;
  MultiHeadAttention cross_attention_;
  Residual cross_residual_;
  FeedForward feed_forward_;
  Residual feed_forward_residual_;
};

class Decoder {
 public:
  Decoder(int layers, const TransformerLayerConfig& config, DropoutSites& sites);

  /// Embedded target rows [Nq, d_model] -> states [Nq, d_model].
  Var forward(Context& context, Var x, const Sequences& rows, Var memory, const Sequences& memory_rows) const;

  /// Keys and values of the memory for every layer; no hypotheses yet.
  void start(Context& context, Var memory, std::span<const int32_t> memory_offsets,
             DecoderCache& cache) const;
  /// One embedded token for each hypothesis, x [R, d_model] -> states [R, d_model]. parents[i]: the
  /// hypothesis of the step before that i continues; sources[i]: its source, rising.
  Var step(Context& context, Var x, std::span<const int32_t> parents, std::span<const int32_t> sources,
           DecoderCache& cache) const;

  void initialise(Random& random);
  /// Names begin with "decoder.".
  void visit(const ParameterVisitor& visitor);
  void visit_attentions(const AttentionVisitor& visitor) const;
  /// By its name; null when there is no such attention.
  MultiHeadAttention* find_attention(std::string_view name);

 private:
  std::deque<DecoderLayer> layers_;
  std::unique_ptr<LayerNorm> final_norm_;  // pre-norm only
};

}  // namespace mh
