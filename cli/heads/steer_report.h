// What `multihead heads steer` prints.
#pragma once

#include <string>

#include "multihead/heads/steering/heads_steer.h"

namespace mh::cli {

/// The direction, and what it does at each strength; 80 columns.
std::string steering_tables(const SteerReport& steering);

}  // namespace mh::cli
