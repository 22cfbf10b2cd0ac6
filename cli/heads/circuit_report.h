// What `multihead heads circuit` prints.
#pragma once

#include <cstdint>
#include <string>

#include "multihead/heads/circuit/heads_circuit.h"

namespace mh::cli {

/// The circuit's figures beside random ones, its edges, and those that were measured exactly; 80 columns. shown: edges of each at most.
std::string circuit_tables(const CircuitReport& found, int64_t shown);

}  // namespace mh::cli
