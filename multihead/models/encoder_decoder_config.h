// EncoderDecoderConfig: the shape of an encoder-decoder Transformer.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "multihead/kernels/elementwise.h"
#include "multihead/nn/stack_config.h"

namespace mh {

struct ConfigNames;

/// The heads of one attention that differ from those of the model.
struct OwnHeads {
  std::string attention;  // "encoder.3.self_attention"
  HeadGeometry geometry;  // with its own number of `heads`
  bool operator==(const OwnHeads&) const = default;

  template <class V>
  void visit(V& v) {
    v("attention", attention);
    v("heads", geometry.heads);
    geometry.visit(v);
  }
};

struct EncoderDecoderConfig {
  int32_t vocabulary_size = 0;         // of the source; also of the target when target_vocabulary_size is 0
  int32_t target_vocabulary_size = 0;  // 0: the same vocabulary
  int32_t d_model = 512;
  int32_t encoder_layers = 6;
  int32_t decoder_layers = 6;
  int32_t encoder_heads = 8;
  int32_t decoder_heads = 8;
  HeadGeometry geometry;            // of all attentions but `own_heads`; its `heads` is ignored
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
  /// Returns the heads of an attention by name ("decoder.0.cross_attention"), not yet completed().
  HeadGeometry heads_of(std::string_view attention) const;
};

/// Returns everything that is wrong with a configuration, one clause each; empty when a model can be built.
std::vector<std::string> problems_of(const EncoderDecoderConfig& config);
/// The same with other names for the fields (config_names.h).
std::vector<std::string> problems_of(const EncoderDecoderConfig& config, const ConfigNames& names);

/// Returns a lower bound of the number of parameters. It is a double, since a configuration from a file may
/// ask for more than an integer can count.
double least_parameters(const EncoderDecoderConfig& config);

/// Return the configurations of the two stacks. REQUIRES: problems_of(config) is empty.
StackConfig encoder_stack(const EncoderDecoderConfig& config);
StackConfig decoder_stack(const EncoderDecoderConfig& config);

/// Returns the shape with this name, one of transformer_presets(). The caller sets vocabulary and special
/// tokens. Throws UsageError listing the names.
EncoderDecoderConfig transformer_preset(std::string_view name);

}  // namespace mh
