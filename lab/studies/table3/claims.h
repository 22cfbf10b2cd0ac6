// Table 3 of "Attention is all you need" in miniature: what the shape of the model is worth.
#pragma once

#include <span>

#include "lab/studies/study.h"

namespace mh::table3 {

std::span<const TrainedCheck> trained();

}  // namespace mh::table3
