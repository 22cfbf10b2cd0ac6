// Random models and sentences of prime sizes.
#pragma once

#include <cstdint>
#include <vector>

#include "multihead/base/random.h"
#include "multihead/models/encoder_decoder.h"
#include "multihead/models/translator_shape.h"

namespace mh {

inline constexpr int32_t kEnd = 0, kUnknown = 1, kPad = 2;

inline TranslatorShape small_shape() {
  TranslatorShape shape;
  shape.vocabulary_size = 37;
  shape.d_model = 20;
  shape.encoder_layers = 2;
  shape.decoder_layers = 3;
  shape.encoder_heads = 2;
  shape.decoder_heads = 5;
  shape.encoder_ff = 31;
  shape.decoder_ff = 29;
  shape.max_positions = 41;
  shape.pad_id = shape.decoder_start_id = kPad;
  shape.eos_id = kEnd;
  return shape;
}

/// T5's norms, feed-forward layers, positions and output, with buckets of odd numbers.
inline void put_t5(TranslatorShape& shape) {
  shape.geometry = {.d_key = 3, .biases = Biases::kNone, .scale = 1.0f};
  shape.positions = Positions::kT5;
  shape.one_bias = true;
  shape.buckets = {.count = 9, .farthest = 7};
  shape.position_offset = 0;
  shape.activation = Activation::kGeluTanh;
  shape.gated = true;
  shape.feed_forward_bias = false;
  shape.norm = NormPlacement::kPre;
  shape.norm_kind = NormKind::kRms;
  shape.norm_epsilon = 1e-6f;
  shape.norm_embeddings = shape.scale_embedding = false;
  shape.output_bias = false;
  shape.scale_states = true;
}

/// Weights a few times larger than those of initialise(): distributions that are far from even.
inline void sharpen(EncoderDecoder& model, float factor) {
  model.visit([factor](const std::string& name, Parameter& parameter) {
    if (name.find("norm") != std::string::npos || name == "logits_bias") return;
    const MatrixView view = parameter.value.view();
    for (int64_t i = 0; i < view.rows; ++i) {
      for (int64_t j = 0; j < view.cols; ++j) view(i, j) *= factor;
    }
    parameter.changed();
  });
}

/// Adds to the logit of one token, e.g. of the end token: sentences of a useful length.
inline void add_to_logit(EncoderDecoder& model, int32_t token, float value) {
  model.visit([=](const std::string& name, Parameter& parameter) {
    if (name != "logits_bias") return;
    parameter.value.view()(0, token) += value;
    parameter.changed();
  });
}

inline std::vector<std::vector<int32_t>> random_sources(uint64_t seed, std::vector<int32_t> lengths,
                                                        int32_t vocabulary = 37) {
  Random random(seed);
  std::vector<std::vector<int32_t>> sources;
  for (const int32_t length : lengths) {
    auto& source = sources.emplace_back();
    for (int32_t i = 0; i + 1 < length; ++i) {
      source.push_back(kPad + 1 +
                       static_cast<int32_t>(random.below(static_cast<uint32_t>(vocabulary - kPad - 1))));
    }
    source.push_back(kEnd);
  }
  return sources;
}

}  // namespace mh
