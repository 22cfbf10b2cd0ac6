// Presets: shapes of Transformers by name. There are those of Vaswani et al. 2017, the rows of its Table 3,
// and small versions of them.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

namespace mh {

/// What a preset says besides the shape.
struct TransformerPreset {
  std::string_view name;
  std::string_view family;                      // tiny, small, base or big: whose training settings it takes
  std::string_view what;                        // in words
  std::optional<float> dropout = std::nullopt;  // set when the row of Table 3 is about it
  std::optional<float> label_smoothing = std::nullopt;  // the same
};
/// "tiny" (4 + 4 layers, d_model 128, d_ff 256, 4 heads), "small" (6 + 6, 256, 1024, 4), "base" and "big";
/// the rows of Table 3 of Vaswani et al. 2017 by what they change, "base-h1", "base-dk16", ...; and the
/// same changes of tiny, "tiny-h1", ...
std::vector<TransformerPreset> transformer_presets();

/// Throws UsageError listing the names. The shape itself comes from transformer_preset()
/// (translator_shape.h).
TransformerPreset about_transformer_preset(std::string_view name);

}  // namespace mh
