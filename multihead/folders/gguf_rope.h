// What a GGUF file says about rotary positions, as the fields of config.json.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>

#include "multihead/folders/gguf_architecture.h"
#include "multihead/io/gguf.h"

namespace mh {

/// Adds the base, the scaling and, where heads turn in part, which share of them. Throws FormatError naming the key or the tensor
/// that asks for what is not supported.
void add_gguf_rope(const GgufFile& file, const GgufArchitecture& architecture, int64_t d_head,
                   nlohmann::ordered_json& config);

}  // namespace mh
