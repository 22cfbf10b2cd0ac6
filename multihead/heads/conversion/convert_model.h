// Converts the heads of a whole model, and measures how far the outputs of two models differ.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "multihead/heads/conversion/convert_heads.h"
#include "multihead/models/encoder_decoder.h"

namespace mh {

/// Converts one attention; gets its name and its weights, returns the new weights.
using ConvertLayer = std::function<LayerWeights(const std::string& attention, const LayerWeights& before)>;

/// Returns a model with every attention converted and everything else unchanged. Attentions may get
/// different heads (EncoderDecoderConfig::own_heads). Throws UsageError when the model's positions do not
/// allow the conversion; errors of `convert` get the attention's name in front.
std::unique_ptr<EncoderDecoder> convert_model(EncoderDecoder& model, const ConvertLayer& convert);

/// Returns a model without these heads ("encoder.3.self_attention.1", or patterns, nn/head_name.h): their parameters
/// are gone. Throws UsageError on heads that the model does not have, and when an attention would keep none.
std::unique_ptr<EncoderDecoder> without_heads(EncoderDecoder& model, const std::vector<std::string>& heads);

/// The largest absolute differences between the outputs of two models, and the largest absolute outputs of
/// the first.
struct ModelDifference {
  double memory = 0, memory_magnitude = 0;  // the encoder's output
  double logits = 0, logits_magnitude = 0;  // the decoder's logits
};
/// Compares two models on pairs of sequences. targets: as the decoder reads them; throws UsageError unless
/// there is one for each source. `sites`: applied to the first model, e.g. to mute the heads that
/// the second does not have; may be null.
ModelDifference compare_models(EncoderDecoder& first, EncoderDecoder& second,
                               const std::vector<std::vector<int32_t>>& sources,
                               const std::vector<std::vector<int32_t>>& targets, Sites* sites = nullptr);

/// Returns sequences of random tokens, without special tokens but for the end token last, for comparisons
/// without text.
std::vector<std::vector<int32_t>> random_sentences(const EncoderDecoderConfig& config, int32_t vocabulary,
                                                   int count, uint64_t seed);

}  // namespace mh
