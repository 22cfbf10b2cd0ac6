// The shape of an encoder-decoder Transformer.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "multihead/kernels/elementwise.h"
#include "multihead/models/config_names.h"
#include "multihead/nn/stack_config.h"

namespace mh {

/// The heads of one attention, where they differ from the model's.
struct OwnHeads {
  std::string attention;  // "encoder.3.self_attention"
  HeadGeometry geometry;  // its `heads`, too
  bool operator==(const OwnHeads&) const = default;

  template <class V>
  void visit(V& v) {
    v("attention", attention);
    v("heads", geometry.heads);
    geometry.visit(v);
  }
};

struct EncoderDecoderConfig {
  int32_t vocabulary_size = 0;         // of the source, and of the target when shared
  int32_t target_vocabulary_size = 0;  // 0: the same vocabulary
  int32_t d_model = 512;
  int32_t encoder_layers = 6;
  int32_t decoder_layers = 6;
  int32_t encoder_heads = 8;
  int32_t decoder_heads = 8;
  HeadGeometry geometry;            // of all attentions but `own_heads`; its `heads` is not looked at
  std::vector<OwnHeads> own_heads;  // attentions with other heads, e.g. after some were removed
  Positions positions = Positions::kSinusoidal;
  int32_t encoder_ff = 2048;
  int32_t decoder_ff = 2048;
  Activation activation = Activation::kRelu;
  NormPlacement norm = NormPlacement::kPost;
  DropoutRates dropout;          // residual, weights, activation
  int32_t max_positions = 512;   // longest sequence
  bool share_embeddings = true;  // one matrix for source, target and output
  bool scale_embedding = true;   // times sqrt(d_model)
  int32_t pad_id = 0;
  int32_t eos_id = 0;
  int32_t decoder_start_id = 0;

  int32_t target_vocabulary() const {
    return target_vocabulary_size > 0 ? target_vocabulary_size : vocabulary_size;
  }
  /// The heads of an attention by its name ("decoder.0.cross_attention"), not yet completed().
  HeadGeometry heads_of(std::string_view attention) const;
};

/// All that is wrong with a configuration, one clause each; empty when it can be built.
std::vector<std::string> problems_of(const EncoderDecoderConfig& config,
                                     const ConfigNames& names = {.start_id = "decoder_start_id"});

/// A lower bound of its numbers, in double: a configuration may claim more than any integer holds.
double least_parameters(const EncoderDecoderConfig& config);

/// The two stacks of such a model. REQUIRES: problems_of(config) is empty.
StackConfig encoder_stack(const EncoderDecoderConfig& config);
StackConfig decoder_stack(const EncoderDecoderConfig& config);

/// The shape of that name: transformer_presets() lists them. Vocabulary and special tokens are the caller's
/// to set. Throws UsageError listing the names.
EncoderDecoderConfig transformer_preset(std::string_view name);

}  // namespace mh
