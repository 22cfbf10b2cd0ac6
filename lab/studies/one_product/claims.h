// 004: "why is one big product still called multi-head?"
#pragma once

#include <span>

#include "lab/studies/study.h"

namespace mh::one_product {

std::span<const AlgebraCheck> algebra();

}  // namespace mh::one_product
