// The tables of `multihead heads importance`.
#pragma once

#include <cstddef>
#include <string>

#include "multihead/heads/importance/pruning_curve.h"

namespace mh::cli {

/// The heads by rank, `shown` of them (0: all), with bars; 80 columns.
std::string importance_table(const ImportanceReport& report, size_t shown);
/// The score against the number of muted heads.
std::string curve_table(const PruningCurve& curve);

}  // namespace mh::cli
