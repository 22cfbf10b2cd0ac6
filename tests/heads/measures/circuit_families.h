// Small random models of each family of unequal prime sizes, for tests of circuits, with the matrices of their weights written
// out.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "multihead/base/random.h"
#include "multihead/models/causal_model.h"
#include "multihead/models/encoder_decoder.h"
#include "multihead/models/encoder_model.h"
#include "multihead/models/translator_shape.h"
#include "multihead/tensor/linear_algebra.h"
#include "tests/support/small_model.h"

namespace mh::test {

/// Normal numbers everywhere; gains around 1, some of them negative.
inline void fill_parameters(Model& model, uint64_t seed) {
  Random random(seed);
  model.visit(ParameterVisitor([&](const std::string& name, Parameter& parameter) {
    const bool gain = name.ends_with(".gain") || name.ends_with("query_norm") || name.ends_with("key_norm");
    for (int64_t i = 0; i < parameter.value.size(); ++i)
      parameter.value.data()[i] = static_cast<float>(gain ? 1 + random.normal() : 0.5 * random.normal());
    parameter.changed();
  }));
}

inline void put_numbers(Model& model, const std::string& name, const std::vector<std::vector<float>>& rows) {
  model.visit(ParameterVisitor([&](const std::string& found, Parameter& parameter) {
    if (found != name) return;
    for (size_t i = 0; i < rows.size(); ++i) {
      for (size_t j = 0; j < rows[i].size(); ++j)
        parameter.value(static_cast<int64_t>(i), static_cast<int64_t>(j)) = rows[i][j];
    }
    parameter.changed();
  }));
}

inline DoubleMatrix operator*(const DoubleMatrix& a, const DoubleMatrix& b) {
  return product(a.view(), b.view());
}

/// The parameters of a model in double, and norms as matrices.
class WholeMatrices {
 public:
  explicit WholeMatrices(const Model& model) : d_(model.facts().d_model) {
    model.visit(ConstParameterVisitor([&](const std::string& name, const Parameter& parameter) {
      parameters_[name] = in_double(parameter.value.view());
    }));
  }

  bool has(const std::string& name) const { return parameters_.contains(name); }
  const DoubleMatrix& at(const std::string& name) const { return parameters_.at(name); }
  DoubleMatrix transposed_at(const std::string& name) const { return transposed(at(name).view()); }
  /// (I - 11^T / d) diag(gain), or diag(gain).
  DoubleMatrix norm(const std::string& gain, NormKind kind) const {
    const int64_t d = at(gain).cols();
    DoubleMatrix centring(d, d), scaling(d, d);
    for (int64_t i = 0; i < d; ++i) {
      for (int64_t j = 0; j < d; ++j)
        centring(i, j) =
            (i == j ? 1.0 : 0.0) - (kind == NormKind::kLayer ? 1.0 / static_cast<double>(d) : 0.0);
      scaling(i, i) = at(gain)(0, i);
    }
    return centring * scaling;
  }
  DoubleMatrix identity() const {
    DoubleMatrix found(d_, d_);
    for (int i = 0; i < d_; ++i) found(i, i) = 1;
    return found;
  }
  /// Columns of head h where `count` heads lie side by side.
  DoubleMatrix head(const std::string& name, int h, int count) const {
    const DoubleMatrix& all = at(name);
    const int64_t size = all.cols() / count;
    DoubleMatrix found(all.rows(), size);
    for (int64_t i = 0; i < all.rows(); ++i) {
      for (int64_t j = 0; j < size; ++j) found(i, j) = all(i, h * size + j);
    }
    return found;
  }

 private:
  int d_;
  std::map<std::string, DoubleMatrix> parameters_;
};

/// What the test knows of a family.
struct CircuitFamily {
  std::unique_ptr<Model> model;
  std::map<std::string, NormConfig> norms;  // of its stacks
  /// W_E with norms, and W_U: of the attentions whose names contain the key.
  std::map<std::string, std::pair<DoubleMatrix, DoubleMatrix>> words = {};
};
inline CircuitFamily family_translator(NormPlacement placement, bool one_table) {
  TranslatorShape shape = small_shape();
  shape.d_model = 13;
  shape.encoder_heads = 2;
  shape.decoder_heads = 3;
  shape.geometry = {.d_key = 5, .d_value = 7};
  shape.norm = placement;
  shape.share_embeddings = one_table;
  if (!one_table) shape.target_vocabulary_size = 31;
  CircuitFamily family{std::make_unique<EncoderDecoder>(shape.config()), {}};
  fill_parameters(*family.model, 3);
  family.norms = {{"encoder", shape.config().encoder.norm}, {"decoder", shape.config().decoder.norm}};
  const WholeMatrices weights(*family.model);
  DoubleMatrix out = weights.transposed_at(one_table ? "embedding" : "output");
  if (placement == NormPlacement::kPre) out = weights.norm("decoder.final_norm.gain", NormKind::kLayer) * out;
  family.words["decoder"] = {weights.at(one_table ? "embedding" : "target_embedding"), out};
  if (!one_table) {  // of cross-attention there is no score
    auto words = std::move(family.words.at("decoder"));
    family.words.clear();
    for (const char* self : {"decoder.0.self", "decoder.1.self", "decoder.2.self"})
      family.words[self] = words;
  }
  return family;
}

inline EncoderConfig encoder_config() {
  EncoderConfig config;
  config.embedding = {
      .vocabulary = 23, .d_model = 11, .scaled = false, .token_types = 2, .norm = NormConfig{}};
  config.max_positions = 17;
  config.stack = {
      .d_model = 11,
      .layers = std::vector<LayerConfig>(
          3, {.self_attention = {.heads = 3, .d_key = 5, .d_value = 2}, .feed_forward = {.d_ff = 13}})};
  config.masked_words = MaskedWordsConfig{};
  return config;
}

/// Embeddings of d_embedding numbers, and as many before the words, where that is not d_model.
inline CircuitFamily family_bert(int d_embedding = 11) {
  EncoderConfig config = encoder_config();
  config.embedding.d_model = d_embedding;
  CircuitFamily family{std::make_unique<EncoderModel>(config), {{"encoder", config.stack.norm}}};
  fill_parameters(*family.model, 5);
  const WholeMatrices weights(*family.model);
  DoubleMatrix embedded = weights.at("embedding") * weights.norm("embedding.norm.gain", NormKind::kLayer);
  if (weights.has("embedding.projection.w")) embedded = embedded * weights.at("embedding.projection.w");
  family.words["encoder"] = {embedded, weights.at("masked_words.w") *
                                           weights.norm("masked_words.norm.gain", NormKind::kLayer) *
                                           weights.transposed_at("embedding")};
  return family;
}

/// Norms before the sublayers, but for that of the first layer.
inline CircuitFamily family_modern_bert() {
  EncoderConfig config = encoder_config();
  config.embedding.token_types = 0;
  config.positions = config.stack.positions = Positions::kRotary;
  config.stack.norm.placement = NormPlacement::kPre;
  for (LayerConfig& layer : config.stack.layers) layer.self_attention.d_key = 4;
  config.stack.layers[0].norm_before = false;
  CircuitFamily family{std::make_unique<EncoderModel>(config), {{"encoder", config.stack.norm}}};
  fill_parameters(*family.model, 7);
  const WholeMatrices weights(*family.model);
  family.words["encoder"] = {
      weights.at("embedding") * weights.norm("embedding.norm.gain", NormKind::kLayer),
      weights.norm("encoder.final_norm.gain", NormKind::kLayer) * weights.at("masked_words.w") *
          weights.norm("masked_words.norm.gain", NormKind::kLayer) * weights.transposed_at("embedding")};
  return family;
}

inline CausalConfig gpt_config() {
  CausalConfig config;
  config.embedding = {.vocabulary = 29, .d_model = 13, .scaled = false};
  config.max_positions = 19;
  config.stack = {
      .name = "decoder",
      .d_model = 13,
      .layers = {{.self_attention = {.heads = 3, .d_key = 5, .d_value = 7}, .feed_forward = {.d_ff = 11}},
                 {.self_attention = {.heads = 2, .d_key = 17}, .feed_forward = {.d_ff = 11}},
                 {.self_attention = {.heads = 5, .d_key = 2}, .feed_forward = {.d_ff = 11}}},
      .mask = StackMask::causal(),
      .norm = {.placement = NormPlacement::kPre}};
  return config;
}

inline CircuitFamily family_causal(const CausalConfig& config, uint64_t seed) {
  CircuitFamily family{std::make_unique<CausalModel>(config), {{"decoder", config.stack.norm}}};
  fill_parameters(*family.model, seed);
  const WholeMatrices weights(*family.model);
  DoubleMatrix out = weights.transposed_at(config.tied ? "embedding" : "output");
  if (weights.has("decoder.final_norm.gain"))
    out = weights.norm("decoder.final_norm.gain", config.stack.norm.kind) * out;
  family.words["decoder"] = {weights.at("embedding"), out};
  return family;
}

/// Llama's kind with Qwen3's norms of queries and keys.
inline CircuitFamily family_llama() {
  CausalConfig config = gpt_config();
  config.tied = false;
  config.positions = config.stack.positions = Positions::kRotary;
  config.stack.norm.kind = NormKind::kRms;
  for (LayerConfig& layer : config.stack.layers) {
    layer.self_attention = {.heads = 6,
                            .d_key = 4,
                            .d_value = 5,
                            .key_heads = 2,
                            .query_key_norm = QueryKeyNorm::kRms,
                            .biases = Biases::kNone};
  }
  return family_causal(config, 11);
}

}  // namespace mh::test
