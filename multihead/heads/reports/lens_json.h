// The JSON of `multihead heads lens` (docs/file-formats.md).
#pragma once

#include <string>

#include "multihead/heads/lens/heads_lens.h"

namespace mh {

std::string lens_json(const LensReport& lens, const std::string& model);

}  // namespace mh
