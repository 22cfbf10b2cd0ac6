// The JSON of `multihead heads steer` (docs/file-formats.md).
#pragma once

#include <string>

#include "multihead/heads/steering/heads_steer.h"

namespace mh {

std::string steer_json(const SteerReport& steering, const std::string& model);

}  // namespace mh
