#include "multihead/models/transformer_presets.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "multihead/base/error.h"
#include "multihead/models/translator_shape.h"

namespace mh {
namespace {

/// A shape, or what a row of Table 3 changes of its family's; 0: as there.
struct Row {
  TransformerPreset about;
  int32_t layers = 0, d_model = 0, d_ff = 0, heads = 0;
  int32_t d_key = 0;  // d_value stays d_model / heads
  Positions positions = Positions::kSinusoidal;
};

// base, big and the rows of base: Vaswani et al. 2017, Table 3. tiny: fairseq's transformer_tiny as used on
// Multi30k. The rows of tiny change by the same factors.
constexpr Row size(std::string_view name, std::string_view what, int32_t layers, int32_t d_model,
                   int32_t d_ff, int32_t heads, float dropout) {
  return {.about = {.name = name, .family = name, .what = what, .dropout = dropout},
          .layers = layers,
          .d_model = d_model,
          .d_ff = d_ff,
          .heads = heads};
}
constexpr Row heads(std::string_view family, std::string_view name, std::string_view what, int32_t heads) {
  return {.about = {.name = name, .family = family, .what = what}, .heads = heads};
}
constexpr Row keys(std::string_view family, std::string_view name, std::string_view what, int32_t d_key) {
  return {.about = {.name = name, .family = family, .what = what}, .d_key = d_key};
}
constexpr Row layers(std::string_view family, std::string_view name, std::string_view what, int32_t layers) {
  return {.about = {.name = name, .family = family, .what = what}, .layers = layers};
}
constexpr Row width(std::string_view family, std::string_view name, std::string_view what, int32_t d_model) {
  return {.about = {.name = name, .family = family, .what = what}, .d_model = d_model};
}
constexpr Row inner(std::string_view family, std::string_view name, std::string_view what, int32_t d_ff) {
  return {.about = {.name = name, .family = family, .what = what}, .d_ff = d_ff};
}
constexpr Row dropout(std::string_view family, std::string_view name, std::string_view what, float rate) {
  return {.about = {.name = name, .family = family, .what = what, .dropout = rate}};
}
constexpr Row smoothing(std::string_view family, std::string_view name, std::string_view what, float share) {
  return {.about = {.name = name, .family = family, .what = what, .label_smoothing = share}};
}
constexpr Row learned(std::string_view family, std::string_view name, std::string_view what) {
  return {.about = {.name = name, .family = family, .what = what}, .positions = Positions::kLearned};
}

constexpr std::array kRows = {
    size("tiny", "4 + 4 layers, d_model 128, d_ff 256, 4 heads", 4, 128, 256, 4, 0.3f),
    size("small", "6 + 6 layers, d_model 256, d_ff 1024, 4 heads", 6, 256, 1024, 4, 0.1f),
    size("base", "6 + 6 layers, d_model 512, d_ff 2048, 8 heads", 6, 512, 2048, 8, 0.1f),
    size("big", "6 + 6 layers, d_model 1024, d_ff 4096, 16 heads", 6, 1024, 4096, 16, 0.3f),

    heads("base", "base-h1", "(A) 1 head of 512", 1),
    heads("base", "base-h4", "(A) 4 heads of 128", 4),
    heads("base", "base-h16", "(A) 16 heads of 32", 16),
    heads("base", "base-h32", "(A) 32 heads of 16", 32),
    keys("base", "base-dk16", "(B) d_key 16 beside d_value 64", 16),
    keys("base", "base-dk32", "(B) d_key 32 beside d_value 64", 32),
    layers("base", "base-n2", "(C) 2 + 2 layers", 2),
    layers("base", "base-n4", "(C) 4 + 4 layers", 4),
    layers("base", "base-n8", "(C) 8 + 8 layers", 8),
    width("base", "base-d256", "(C) d_model 256, heads of 32", 256),
    width("base", "base-d1024", "(C) d_model 1024, heads of 128", 1024),
    inner("base", "base-dff1024", "(C) d_ff 1024", 1024),
    inner("base", "base-dff4096", "(C) d_ff 4096", 4096),
    dropout("base", "base-dropout0", "(D) dropout 0", 0),
    dropout("base", "base-dropout0.2", "(D) dropout 0.2", 0.2f),
    smoothing("base", "base-smoothing0", "(D) label smoothing 0", 0),
    smoothing("base", "base-smoothing0.2", "(D) label smoothing 0.2", 0.2f),
    learned("base", "base-learned", "(E) learned positions"),

    heads("tiny", "tiny-h1", "(A) 1 head of 128", 1),
    heads("tiny", "tiny-h2", "(A) 2 heads of 64", 2),
    heads("tiny", "tiny-h8", "(A) 8 heads of 16", 8),
    heads("tiny", "tiny-h16", "(A) 16 heads of 8", 16),
    keys("tiny", "tiny-dk8", "(B) d_key 8 beside d_value 32", 8),
    keys("tiny", "tiny-dk16", "(B) d_key 16 beside d_value 32", 16),
    layers("tiny", "tiny-n1", "(C) 1 + 1 layers", 1),
    layers("tiny", "tiny-n2", "(C) 2 + 2 layers", 2),
    layers("tiny", "tiny-n3", "(C) 3 + 3 layers", 3),
    layers("tiny", "tiny-n5", "(C) 5 + 5 layers", 5),
    layers("tiny", "tiny-n6", "(C) 6 + 6 layers", 6),
    width("tiny", "tiny-d64", "(C) d_model 64, heads of 16", 64),
    width("tiny", "tiny-d256", "(C) d_model 256, heads of 64", 256),
    inner("tiny", "tiny-dff128", "(C) d_ff 128", 128),
    inner("tiny", "tiny-dff512", "(C) d_ff 512", 512),
    dropout("tiny", "tiny-dropout0", "(D) dropout 0", 0),
    smoothing("tiny", "tiny-smoothing0", "(D) label smoothing 0", 0),
    smoothing("tiny", "tiny-smoothing0.2", "(D) label smoothing 0.2", 0.2f),
    learned("tiny", "tiny-learned", "(E) learned positions"),
};

const Row& row_of(std::string_view name) {
  const auto* const found =
      std::find_if(kRows.begin(), kRows.end(), [&](const Row& row) { return row.about.name == name; });
  if (found != kRows.end()) return *found;
  std::string names;
  for (const Row& row : kRows) names += fmt::format("{}{}", names.empty() ? "" : ", ", row.about.name);
  throw UsageError(fmt::format("preset '{}' is unknown; choose one of {}", name, names));
}

}  // namespace

std::vector<TransformerPreset> transformer_presets() {
  std::vector<TransformerPreset> all;
  for (const Row& row : kRows) all.push_back(row.about);
  return all;
}

TransformerPreset about_transformer_preset(std::string_view name) {
  return row_of(name).about;
}

TranslatorShape transformer_preset(std::string_view name) {
  const Row &row = row_of(name), &family = row_of(row.about.family);
  const auto either = [](int32_t changed, int32_t usual) { return changed != 0 ? changed : usual; };
  TranslatorShape shape;
  shape.d_model = either(row.d_model, family.d_model);
  shape.encoder_layers = shape.decoder_layers = either(row.layers, family.layers);
  shape.encoder_heads = shape.decoder_heads = either(row.heads, family.heads);
  shape.encoder_ff = shape.decoder_ff = either(row.d_ff, family.d_ff);
  shape.dropout.residual = row.about.dropout.value_or(*family.about.dropout);
  shape.positions = row.positions;
  if (row.d_key != 0) {
    shape.geometry.d_key = row.d_key;
    shape.geometry.d_value = shape.d_model / shape.encoder_heads;
  }
  return shape;
}

}  // namespace mh
