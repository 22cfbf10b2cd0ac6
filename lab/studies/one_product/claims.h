// 004: "why is one big product still called multi-head?"
#pragma once

#include <span>

#include "lab/studies/study.h"

namespace mh::one_product {

/// What each clause's mistake is stands above the definition of its check.
std::span<const AlgebraCheck> algebra();
/// 004.2 on sentences, in trained models.
std::span<const TrainedCheck> trained();

Claim memory(const AlgebraCase& a);  // 004.5, of algebra()

}  // namespace mh::one_product
