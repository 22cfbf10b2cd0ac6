// TranslatorShape: an encoder-decoder in few numbers, of which an EncoderDecoderConfig is made: what presets
// and trainings set, and what the config.json of MarianMTModel, of BART, of M2M-100 and of our own translators says.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "multihead/kernels/elementwise.h"
#include "multihead/models/own_heads.h"
#include "multihead/nn/attention_place.h"
#include "multihead/nn/stack_config.h"

namespace mh {

struct ConfigNames;
struct EncoderDecoderConfig;

struct TranslatorShape {
  int32_t vocabulary_size = 0;         // of the source; also of the target when target_vocabulary_size is 0
  int32_t target_vocabulary_size = 0;  // 0: the same vocabulary
  int32_t d_model = 512;
  int32_t encoder_layers = 6;
  int32_t decoder_layers = 6;
  int32_t encoder_heads = 8;
  int32_t decoder_heads = 8;
  HeadGeometry geometry = {};            // of all attentions but `own_heads`; its `heads` is ignored
  std::vector<OwnHeads> own_heads = {};  // attentions with other heads, e.g. after some were removed
  Positions positions = Positions::kSinusoidal;
  int32_t encoder_ff = 2048;
  int32_t decoder_ff = 2048;
  Activation activation = Activation::kRelu;
  bool gated = false;  // of the feed-forward layers
  bool feed_forward_bias = true;
  NormPlacement norm = NormPlacement::kPost;
  NormKind norm_kind = NormKind::kLayer;
  float norm_epsilon = 1e-5f;
  DropoutRates dropout = {};    // residual, weights, activation
  int32_t max_positions = 512;  // longest sequence
  int32_t position_offset = 0;  // rows of a table of positions before the row of position 0
  SinusoidForm sinusoids = SinusoidForm::kMarian;  // with fairseq's a padding token counts as no position
  bool one_bias = false;                           // one table of T5's positions for all layers of a side
  T5Buckets buckets = {};
  bool share_embeddings = true;  // one matrix for source, target and output
  bool own_output = false;       // the output has another matrix; without share_embeddings it always has
  bool output_bias = true;       // of the logits
  bool scale_states = false;     // by 1 / sqrt(d_model), before the output
  bool scale_embedding = true;   // times sqrt(d_model)
  bool norm_embeddings = false;  // a layer norm of their sum with the positions, on each side its own
  int32_t pad_id = 0;
  int32_t eos_id = 0;
  int32_t decoder_start_id = 0;

  int32_t target_vocabulary() const {
    return target_vocabulary_size > 0 ? target_vocabulary_size : vocabulary_size;
  }
  /// Returns the heads of an attention, not yet completed().
  HeadGeometry heads_of(const AttentionPlace& attention) const;
  /// Returns what a model of this shape is made of. Throws UsageError when the shape has problems_of().
  EncoderDecoderConfig config() const;
};

/// Returns everything that is wrong with a shape, one clause each; empty when a model can be built.
std::vector<std::string> problems_of(const TranslatorShape& shape);
/// The same with other names for the fields (config_names.h).
std::vector<std::string> problems_of(const TranslatorShape& shape, const ConfigNames& names);

/// Returns the shape of which this was made, perhaps with other heads: one description for as many attentions as
/// possible, and the others' own. REQUIRES: it was made of a shape.
TranslatorShape shape_of(const EncoderDecoderConfig& config);

/// Returns the shape with this name, one of transformer_presets(). The caller sets vocabulary and special
/// tokens. Throws UsageError listing the names.
TranslatorShape transformer_preset(std::string_view name);

}  // namespace mh
