// Circuits as JSON for other programs: what `multihead heads circuits --json` prints. docs/heads/circuits.md describes every
// field.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "multihead/heads/measures/heads_circuits.h"

namespace mh {

/// "schema" of the JSON. Fields may be added to a schema; one that goes or changes its meaning makes a new one.
inline constexpr int kCircuitsSchema = 1;

/// model: what the JSON calls it. strongest: only so many compositions, the strongest first; none: all.
std::string circuits_json(const std::string& model, const CircuitsReport& circuits,
                          std::optional<size_t> strongest = std::nullopt);

}  // namespace mh
