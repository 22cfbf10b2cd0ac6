#include "multihead/train/translator/translator_heads.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "multihead/base/error.h"
#include "multihead/models/named_geometry.h"
#include "multihead/models/translator_shape.h"

namespace mh {
namespace {

HeadColumns segments(const TranslatorSettings& s, int heads, int d_model) {
  if (s.segments == Segments::kPermuted) return permuted_slices(heads, d_model, s.seed);
  if (!s.segment_size || *s.segment_size > d_model) {
    throw UsageError(fmt::format("`segments` {} needs `segment_size`, from 1 to `d_model` {}",
                                 s.segments == Segments::kSpread ? "spread" : "random", d_model));
  }
  return s.segments == Segments::kSpread ? spread_segments(heads, *s.segment_size, d_model)
                                         : random_columns(heads, *s.segment_size, d_model, s.seed);
}

}  // namespace

HeadGeometry head_geometry(const TranslatorSettings& s, const TranslatorShape& preset) {
  const int heads = s.heads.value_or(preset.encoder_heads), d_model = s.d_model.value_or(preset.d_model);
  HeadGeometry g = s.geometry.empty() ? preset.geometry : named_geometry(s.geometry, heads, d_model);
  g.heads = heads;
  s.head_changes.apply(g);
  if (s.segments != Segments::kNone) g.input = HeadInput::of_columns(segments(s, heads, d_model));
  return g;
}

void check_heads(const TranslatorSettings& settings) {
  const TranslatorShape preset = transformer_preset(settings.preset);
  const HeadGeometry geometry = head_geometry(settings, preset);
  if (geometry.d_key == 0 && geometry.weights == HeadWeights::kSoftmax &&
      *settings.d_model % *settings.heads != 0) {
    throw UsageError(
        fmt::format("`heads` {} does not divide `d_model` {}: the heads share its columns evenly; set "
                    "`d_key` for another size",
                    *settings.heads, *settings.d_model));
  }
  std::vector<std::string> wrong = problems_of(geometry, *settings.d_model);
  if (wrong.empty())
    wrong = problems_of(settings.positions.value_or(preset.positions), geometry, *settings.d_model);
  if (!wrong.empty()) throw UsageError(fmt::format("the heads cannot be built: {}", fmt::join(wrong, "; ")));
}

std::vector<std::string> other_heads(const TranslatorSettings& settings, const TranslatorShape& shape) {
  std::vector<std::string> clauses;
  HeadGeometry found = shape.geometry;
  found.heads = shape.encoder_heads;
  TranslatorSettings there = settings;
  there.heads = shape.encoder_heads;
  there.d_model = shape.d_model;
  HeadGeometry wanted = head_geometry(there, shape);
  wanted.initialisation = found.initialisation;  // how they started is no part of a trained model
  if (wanted != found &&
      (!problems_of(wanted, shape.d_model).empty() ||
       completed(wanted, shape.d_model, "heads") != completed(found, shape.d_model, "heads"))) {
    clauses.emplace_back("`geometry` and the flags of heads describe other heads than it has");
  }
  if (settings.positions && *settings.positions != shape.positions) {
    clauses.push_back(fmt::format("`positions` {} but it has {}",
                                  name_of(*settings.positions, kPositionNames),
                                  name_of(shape.positions, kPositionNames)));
  }
  // With learned positions a longer sentence has no vector.
  if (shape.positions == Positions::kLearned && settings.max_length > shape.max_positions) {
    clauses.push_back(
        fmt::format("`max_length` {} but it learned {} positions", settings.max_length, shape.max_positions));
  }
  return clauses;
}

}  // namespace mh
