// Shapes of Transformers by name: the paper's, the rows of its Table 3, and those in miniature.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

namespace mh {

/// What a name says besides the shape.
struct TransformerPreset {
  std::string_view name;
  std::string_view family;                      // tiny, small, base or big: whose habits of training it has
  std::string_view what;                        // in words
  std::optional<float> dropout = std::nullopt;  // where the row is about it
  std::optional<float> label_smoothing = std::nullopt;  // likewise
};
/// "tiny" (4 + 4 layers, d_model 128, d_ff 256, 4 heads), "small" (6 + 6, 256, 1024, 4), "base" and "big";
/// the rows of Table 3 of Vaswani et al. 2017 by what they change, "base-h1", "base-dk16", ...; the same of
/// tiny.
std::vector<TransformerPreset> transformer_presets();

/// Throws UsageError listing the names. The shape is transformer_preset()'s (transformer_config.h).
TransformerPreset about_transformer_preset(std::string_view name);

}  // namespace mh
