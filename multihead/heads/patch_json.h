// The JSON of `multihead heads patch` (docs/file-formats.md).
#pragma once

#include <string>

#include "multihead/heads/head_patching.h"

namespace mh {

std::string patch_json(const HeadPatching& patching, const std::string& model);

}  // namespace mh
