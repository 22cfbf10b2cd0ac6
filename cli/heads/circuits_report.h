// What `multihead heads circuits` prints: tables for 80 columns.
#pragma once

#include <cstddef>
#include <string>

#include "multihead/heads/measures/heads_circuits.h"

namespace mh::cli {

struct CircuitsTableOptions {
  size_t compositions = 20;  // how many are shown, the strongest
};

/// A table for each attention, a line a head; then the strongest compositions beside those of random matrices.
std::string circuits_table(const CircuitsReport& circuits, const CircuitsTableOptions& options = {});

}  // namespace mh::cli
