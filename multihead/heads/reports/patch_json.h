// The JSON of `multihead heads patch` (docs/file-formats.md).
#pragma once

#include <string>

#include "multihead/heads/patching/heads_patch.h"

namespace mh {

std::string patch_json(const PatchReport& patching, const std::string& model);

}  // namespace mh
