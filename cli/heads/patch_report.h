// What `multihead heads patch` prints.
#pragma once

#include <cstdint>
#include <string>

#include "multihead/heads/patching/heads_patch.h"

namespace mh::cli {

/// What was decided, tables of what is restored in per cent, and the strongest values; 80 columns.
std::string patching_tables(const PatchReport& patching, int64_t strongest);

}  // namespace mh::cli
