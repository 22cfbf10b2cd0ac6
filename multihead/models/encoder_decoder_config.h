// EncoderDecoderConfig: what an encoder-decoder Transformer is made of, an embedding and a stack of layers
// for each side.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "multihead/models/config_names.h"
#include "multihead/models/label_head.h"
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
  /// Set: it is a classifier, whose decoder reads the text shifted by one, and predicts nothing; unset: it is none.
  std::optional<LabelConfig> labels = {};
  bool shifts_last_to_start =
      false;  // of a classifier: its decoder begins with the text's last token (mBART)

  int32_t target_vocabulary() const { return static_cast<int32_t>(target_embedding.vocabulary); }
};

/// Makes it a classifier of texts as BART and T5 are saved: tanh before the labels, and no output layer.
void become_classifier(EncoderDecoderConfig& config, int32_t labels);

/// Returns everything that is wrong with a configuration, one clause each; empty when a model can be built.
std::vector<std::string> problems_of(const EncoderDecoderConfig& config,
                                     const ConfigNames& names = {.start_id = "decoder_start_id"});

/// Returns a lower bound of the number of parameters. It is a double, since a configuration from a file may
/// ask for more than an integer can count.
double least_parameters(const EncoderDecoderConfig& config);

}  // namespace mh
