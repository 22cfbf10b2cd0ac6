// What the settings of a training say about heads, as the geometry of its model.
#pragma once

#include <string>
#include <vector>

#include "multihead/recipes/translator_settings.h"

namespace mh {

/// The geometry by name (the preset's when there is none), with what else is given in its place. Its heads
/// are those of the settings, when given. Throws as named_geometry() does, and UsageError on segments without
/// a size.
HeadGeometry head_geometry(const TranslatorSettings& settings, const EncoderDecoderConfig& preset);

/// Throws UsageError when heads cannot be so. REQUIRES: settings are resolved.
void check_heads(const TranslatorSettings& settings);

/// Clauses on what `settings` ask of heads and positions and `config` has otherwise.
std::vector<std::string> other_heads(const TranslatorSettings& settings, const EncoderDecoderConfig& config);

}  // namespace mh
