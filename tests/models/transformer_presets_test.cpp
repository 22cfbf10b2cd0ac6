// Presets: their shapes can be built, and have the numbers of parameters that Table 3 prints, as far as it
// says how it counts.
#include "multihead/models/transformer_presets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "multihead/base/error.h"
#include "multihead/models/translator_shape.h"

namespace mh {
namespace {

/// Projections of attentions and feed-forward layers, with biases, and norms; no embeddings.
double parameters_of_layers(const TranslatorShape& c) {
  HeadGeometry geometry = c.geometry;
  geometry.heads = c.encoder_heads;
  const HeadGeometry g = completed(geometry, c.d_model, "row");
  const double d = c.d_model, keys = g.heads * g.d_key, values = g.heads * g.d_value;
  const double attention = 2 * (d + 1) * keys + (d + 1) * values + (values + 1) * d;
  const double feed_forward = (d + 1) * c.encoder_ff + (c.encoder_ff + 1.0) * d, norm = 2 * d;
  return c.encoder_layers * (attention + feed_forward + 2 * norm) +
         c.decoder_layers * (2 * attention + feed_forward + 3 * norm);
}

TEST(TransformerPresets, CanAllBeBuilt) {
  std::set<std::string_view> names;
  for (const TransformerPreset& preset : transformer_presets()) {
    TranslatorShape shape = transformer_preset(preset.name);
    shape.vocabulary_size = 100;
    EXPECT_THAT(problems_of(shape), testing::IsEmpty()) << preset.name;
    EXPECT_TRUE(names.insert(preset.name).second) << preset.name;
    EXPECT_NO_THROW(transformer_preset(preset.family));
  }
  EXPECT_THROW(transformer_preset("base-h3"), UsageError);
}

// Differences between rows agree with the table's, which are whole millions.
TEST(TransformerPresets, RowsOfTable3DifferByItsParameters) {
  constexpr double kVocabulary = 37000;
  const auto millions = [](std::string_view name) {
    const TranslatorShape shape = transformer_preset(name);
    return (parameters_of_layers(shape) + kVocabulary * shape.d_model) / 1e6;
  };
  const double base = millions("base");
  const std::map<std::string_view, double> printed = {
      {"base-dk16", 58},    {"base-dk32", 60},     {"base-n2", 36},      {"base-n4", 50},
      {"base-n8", 80},      {"base-d256", 28},     {"base-d1024", 168},  {"base-dff1024", 53},
      {"base-dff4096", 90}, {"base-h1", 65},       {"base-h16", 65},     {"base-h32", 65},
      {"big", 213},         {"base-dropout0", 65}, {"base-learned", 65},
  };
  for (const auto& [name, all] : printed) {
    EXPECT_NEAR(millions(name) - base, all - 65, 0.035 * all) << name;
  }
  EXPECT_EQ(millions("base-h4"), base);
}

}  // namespace
}  // namespace mh
