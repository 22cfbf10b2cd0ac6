// Converts the heads of a whole model, and measures how far the outputs of two models differ.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "multihead/heads/conversion/convert_heads.h"
#include "multihead/models/model.h"

namespace mh {

/// Converts one attention; gets its name and its weights, returns the new weights.
using ConvertLayer = std::function<LayerWeights(const std::string& attention, const LayerWeights& before)>;

/// Returns a model of the same kind with every attention converted and everything else unchanged. Attentions may get
/// different heads. Throws UsageError when the model's positions do not allow the conversion; errors of `convert` get the
/// attention's name in front.
std::unique_ptr<Model> convert_model(Model& model, const ConvertLayer& convert);

/// Returns a model without these heads ("encoder.3.self_attention.1", or patterns, nn/head_name.h): their parameters
/// are gone. Throws UsageError on heads that the model does not have, and when an attention would keep none.
std::unique_ptr<Model> without_heads(Model& model, const std::vector<std::string>& heads);

/// The largest absolute difference between two outputs, and the largest absolute number of the first.
struct Difference {
  double largest = 0, magnitude = 0;
};
struct ModelDifference {
  Difference states;                 // the last states
  std::optional<Difference> memory;  // the encoder's states, of a translator
  std::optional<Difference> logits;  // of a model that predicts words

  /// Of what a user gets: the logits, or where there are none the states.
  const Difference& of_outputs() const { return logits ? *logits : states; }
};
/// Compares two models on sequences. targets: as a translator's decoder reads them; throws UsageError unless
/// there is one for each source, or none for another model. `sites`: applied to the first model, e.g. to mute the heads
/// that the second does not have; may be null.
ModelDifference compare_models(const Model& first, const Model& second,
                               const std::vector<std::vector<int32_t>>& sources,
                               const std::vector<std::vector<int32_t>>& targets = {}, Sites* sites = nullptr);

/// Returns sequences of random tokens, without special tokens but for the end token last where the model has one, for
/// comparisons without text.
std::vector<std::vector<int32_t>> random_sentences(const ModelFacts& facts, int32_t vocabulary, int count,
                                                   uint64_t seed);

}  // namespace mh
