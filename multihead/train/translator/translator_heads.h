// Makes the geometry of a model from the settings of a training about heads.
#pragma once

#include <string>
#include <vector>

#include "multihead/models/translator_shape.h"
#include "multihead/train/translator/translator_settings.h"

namespace mh {

/// Returns the geometry that the settings name (else the preset's), with the fields that the settings
/// override. `heads` comes from the settings, if given. Throws as named_geometry() does, and UsageError on
/// segments without a size.
HeadGeometry head_geometry(const TranslatorSettings& settings, const TranslatorShape& preset);

/// Throws UsageError when a model with these settings of heads cannot be built. REQUIRES: settings are
/// resolved.
void check_heads(const TranslatorSettings& settings);

/// Returns a clause for each setting of heads and positions that differs from `shape`.
std::vector<std::string> other_heads(const TranslatorSettings& settings, const TranslatorShape& shape);

}  // namespace mh
