#include "multihead/models/encoder_decoder_config.h"

#include <fmt/format.h>

#include "multihead/base/error.h"

namespace mh {
namespace {

void check_range(std::vector<std::string>& found, std::string_view name, int64_t value, int64_t low,
                 int64_t high) {
  if (value < low || value > high)
    found.push_back(fmt::format("{} is {}; expected {} ... {}", name, value, low, high));
}

void check_rate(std::vector<std::string>& found, std::string_view name, float rate) {
  if (!(rate >= 0 && rate < 1))
    found.push_back(fmt::format("{} is {}; expected at least 0 and below 1", name, rate));
}

// A geometry that says its sizes needs no divisor.
void check_heads(std::vector<std::string>& found, std::string_view name, int32_t heads,
                 const EncoderDecoderConfig& config) {
  if (heads < 1 || (config.geometry.d_key == 0 && (heads > config.d_model || config.d_model % heads != 0))) {
    found.push_back(fmt::format("{} is {}; expected a divisor of d_model {}", name, heads, config.d_model));
    return;
  }
  HeadGeometry geometry = config.geometry;
  geometry.heads = heads;
  std::vector<std::string> wrong = problems(geometry, config.d_model);
  if (wrong.empty()) wrong = problems(config.positions, geometry, config.d_model);
  for (std::string& problem : wrong) found.push_back(std::move(problem));
}

}  // namespace

std::vector<std::string> problems(const EncoderDecoderConfig& config) {
  constexpr int64_t kLargest = 1 << 24, kLayers = 1024;
  std::vector<std::string> found;
  check_range(found, "vocabulary_size", config.vocabulary_size, 2, kLargest);
  check_range(found, "target_vocabulary_size", config.target_vocabulary_size, 0, kLargest);
  check_range(found, "d_model", config.d_model, 1, 1 << 16);
  check_range(found, "encoder_layers", config.encoder_layers, 1, kLayers);
  check_range(found, "decoder_layers", config.decoder_layers, 1, kLayers);
  check_range(found, "encoder_ff", config.encoder_ff, 1, 1 << 20);
  check_range(found, "decoder_ff", config.decoder_ff, 1, 1 << 20);
  check_range(found, "max_positions", config.max_positions, 1, 1 << 20);
  if (found.empty()) {
    check_heads(found, "encoder_heads", config.encoder_heads, config);
    if (found.empty()) check_heads(found, "decoder_heads", config.decoder_heads, config);
  }
  if (config.activation == Activation::kNone)
    found.push_back("activation is none; expected relu, gelu or swish");
  check_rate(found, "dropout", config.dropout.residual);
  check_rate(found, "attention_dropout", config.dropout.weights);
  check_rate(found, "activation_dropout", config.dropout.activation);
  if (config.share_embeddings && config.target_vocabulary() != config.vocabulary_size) {
    found.push_back(fmt::format("target_vocabulary_size is {}; shared embeddings need that of the source, {}",
                                config.target_vocabulary(), config.vocabulary_size));
  }
  const auto check_token = [&](std::string_view name, int32_t id) {
    check_range(found, name, id, 0, config.target_vocabulary() - 1);
  };
  check_token("pad_id", config.pad_id);
  check_token("eos_id", config.eos_id);
  check_token("decoder_start_id", config.decoder_start_id);
  return found;
}

}  // namespace mh
