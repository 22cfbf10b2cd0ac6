// EncoderDecoderConfig: what an encoder-decoder Transformer is made of, an embedding and a stack of layers
// for each side.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "multihead/models/config_names.h"
#include "multihead/nn/embedding.h"
#include "multihead/nn/stack_config.h"

namespace mh {

struct EncoderDecoderConfig {
  EmbeddingConfig embedding = {};         // of the source
  EmbeddingConfig target_embedding = {};  // with as many tokens as the source's when they share a table
  bool share_embeddings = true;           // source and target have one table
  bool tied = true;                       // the output layer uses the table of the target's embedding
  bool output_bias = true;                // whether the output layer has one, [1, V], which is not trained
  bool scale_states = false;              // by 1 / sqrt(d_model), before the output layer (T5)
  int32_t max_positions = 512;            // longest sequence
  int32_t position_offset = 0;            // rows of a table of positions before the row of position 0
  SinusoidForm sinusoids = SinusoidForm::kMarian;
  /// Their positions are added to embeddings, or used by their self-attentions.
  StackConfig encoder = {.name = "encoder",
                         .positions = Positions::kSinusoidal};  // its masks are none or local
  StackConfig decoder = {.name = "decoder",                     // its masks are causal or windows
                         .mask = StackMask::causal(),
                         .cross_attention = true,
                         .positions = Positions::kSinusoidal};
  int32_t pad_id = 0, eos_id = 0, decoder_start_id = 0;

  int32_t target_vocabulary() const { return static_cast<int32_t>(target_embedding.vocabulary); }
};

/// Returns everything that is wrong with a configuration, one clause each; empty when a model can be built.
std::vector<std::string> problems_of(const EncoderDecoderConfig& config,
                                     const ConfigNames& names = {.start_id = "decoder_start_id"});

/// Returns a lower bound of the number of parameters. It is a double, since a configuration from a file may
/// ask for more than an integer can count.
double least_parameters(const EncoderDecoderConfig& config);

}  // namespace mh
