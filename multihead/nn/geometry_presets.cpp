#include <fmt/format.h>

#include <array>

#include "multihead/base/error.h"
#include "multihead/kernels/attention.h"
#include "multihead/nn/head_geometry.h"

namespace mh {
namespace {

struct GeometryPreset {
  GeometryName name;
  HeadGeometry (*make)(int heads, int d_model);
};

HeadGeometry bloem(int heads, int d_model, HeadInput input, HeadOutput output) {
  return {.heads = heads,
          .input = std::move(input),
          .biases = Biases::kNone,
          .output = output,
          .scale = attention_scale(d_model)};
}

const std::array kGeometryPresets = {
    GeometryPreset{{"canonical", "every head reads the whole row (Vaswani et al. 2017)"},
                   [](int h, int) { return HeadGeometry{.heads = h}; }},
    GeometryPreset{{"tensor2tensor", "canonical without biases"},
                   [](int h, int) { return HeadGeometry{.heads = h, .biases = Biases::kNone}; }},
    GeometryPreset{
        {"bloem-narrow-shared", "slices, one s x s projection for all heads, no W^O"},
        [](int h, int d) { return bloem(h, d, HeadInput::slices(true), HeadOutput::kConcatenation); }},
    GeometryPreset{{"bloem-narrow", "slices, an s x s projection for each head, no W^O"},
                   [](int h, int d) { return bloem(h, d, HeadInput::slices(), HeadOutput::kConcatenation); }},
    GeometryPreset{{"bloem-narrow-output", "slices, an s x s projection for each head, and W^O"},
                   [](int h, int d) { return bloem(h, d, HeadInput::slices(), HeadOutput::kProjection); }},
    GeometryPreset{{"bloem-wide", "every head as wide as the row, d_key = d_model"},
                   [](int h, int d) {
                     HeadGeometry g = bloem(h, d, {}, HeadOutput::kProjection);
                     g.d_key = g.d_value = d;
                     return g;
                   }},
    GeometryPreset{
        {"bloem-fourth", "d x d first, then slices with an s x s projection for each head"},
        [](int h, int d) { return bloem(h, d, HeadInput::projected_slices(), HeadOutput::kProjection); }},
    GeometryPreset{{"aggcn", "canonical, W^K starts as a copy of W^Q (Guo et al. 2019)"},
                   [](int h, int) {
                     return HeadGeometry{.heads = h, .initialisation = HeadInitialisation::kCopiedKeys};
                   }},
    GeometryPreset{{"tied", "W^K is W^Q: scores are symmetric"},
                   [](int h, int) { return HeadGeometry{.heads = h, .scores = Scores::kTied}; }},
    GeometryPreset{{"merged", "one matrix W_i for W_i^Q W_i^K^T"},
                   [](int h, int) { return HeadGeometry{.heads = h, .scores = Scores::kMerged}; }},
    GeometryPreset{{"doubled", "x W^Q W_i^Q: another d x d before each head's"},
                   [](int h, int) { return HeadGeometry{.heads = h, .scores = Scores::kDoubled}; }},
    GeometryPreset{{"collaborative", "shared W^Q and W^K, a mixing vector a head (Cordonnier et al. 2020)"},
                   [](int h, int) { return HeadGeometry{.heads = h, .scores = Scores::kCollaborative}; }},
    GeometryPreset{{"multi-query", "all heads share one head of keys and values (Shazeer 2019)"},
                   [](int h, int) { return HeadGeometry{.heads = h, .key_heads = 1}; }},
    GeometryPreset{{"grouped-query", "pairs of heads share keys and values (Ainslie et al. 2023)"},
                   [](int h, int) { return HeadGeometry{.heads = h, .key_heads = h % 2 == 0 ? h / 2 : h}; }},
    GeometryPreset{{"query-key-norm", "scores are a learned number times cos(q, k) (Henry et al. 2020)"},
                   [](int h, int) { return HeadGeometry{.heads = h, .query_key_norm = QueryKeyNorm::kL2}; }},
    GeometryPreset{{"differential", "weights are the difference of two softmaxes (Ye et al. 2024)"},
                   [](int h, int d) {
                     HeadGeometry g{.heads = h, .weights = HeadWeights::kDifferential};
                     // Where 2 h does not divide d_model a key is half a number wider.
                     if (d % (2 * h) != 0 && d % h == 0) {
                       g.d_key = (d / h + 1) / 2;
                       g.d_value = d / h;
                     }
                     return g;
                   }},
    GeometryPreset{{"talking", "heads mix their scores, and their weights again (Shazeer et al. 2020); slow"},
                   [](int h, int) { return HeadGeometry{.heads = h, .weights = HeadWeights::kTalking}; }},
};

}  // namespace

HeadGeometry geometry_preset(std::string_view name, int heads, int d_model) {
  std::string names;
  for (const GeometryPreset& preset : kGeometryPresets) {
    if (preset.name.name == name) return preset.make(heads, d_model);
    names += fmt::format("{}{}", names.empty() ? "" : ", ", preset.name.name);
  }
  throw UsageError(fmt::format("geometry '{}' is unknown; choose one of {}", name, names));
}

std::vector<GeometryName> geometry_names() {
  std::vector<GeometryName> names;
  for (const GeometryPreset& preset : kGeometryPresets) names.push_back(preset.name);
  return names;
}

}  // namespace mh
