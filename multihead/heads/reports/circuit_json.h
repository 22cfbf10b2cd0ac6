// The JSON of `multihead heads circuit` (docs/file-formats.md).
#pragma once

#include <string>

#include "multihead/heads/circuit/heads_circuit.h"

namespace mh {

std::string circuit_json(const CircuitReport& found, const std::string& model);

}  // namespace mh
