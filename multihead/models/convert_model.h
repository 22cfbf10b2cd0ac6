// A whole model with other heads, and how far its outputs are from the old one's.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "multihead/models/convert_heads.h"
#include "multihead/models/encoder_decoder.h"

namespace mh {

/// One attention by its name, before -> after.
using ConvertLayer = std::function<LayerWeights(const std::string& attention, const LayerWeights& before)>;

/// The model with every attention converted; all else as it was. Attentions may end with different heads:
/// EncoderDecoderConfig::own_heads. Throws UsageError where positions forbid it, and what ConvertLayer throws, the
/// attention's name before it.
std::unique_ptr<EncoderDecoder> convert_model(EncoderDecoder& model, const ConvertLayer& convert);

/// Removes these heads ("encoder.3.self_attention.1") physically. Throws UsageError on heads that the model does not
/// have, and when an attention would keep none.
std::unique_ptr<EncoderDecoder> without_heads(EncoderDecoder& model, const std::vector<std::string>& heads);

/// Largest differences of two models on pairs of sequences, and the largest magnitudes of the first's
/// numbers.
struct ModelDifference {
  double memory = 0, memory_magnitude = 0;  // of the encoder's output
  double logits = 0, logits_magnitude = 0;  // of the decoder's
};
/// targets: as the decoder reads them, one for each source, else UsageError. `interventions`: on the first
/// model, for a second without those heads; may be null.
ModelDifference compare_models(EncoderDecoder& first, EncoderDecoder& second,
                               const std::vector<std::vector<int32_t>>& sources,
                               const std::vector<std::vector<int32_t>>& targets,
                               const Interventions* interventions = nullptr);

/// Random tokens that are no special ones, the end token last, for comparisons without text.
std::vector<std::vector<int32_t>> random_sentences(const EncoderDecoderConfig& config, int32_t vocabulary,
                                                   int count, uint64_t seed);

}  // namespace mh
