// 004: "why is one big product still called multi-head?"
#pragma once

#include <span>

#include "lab/studies/study.h"

namespace mh::one_product {

std::span<const AlgebraCheck> algebra();
/// 004.2 on sentences, in trained models.
std::span<const TrainedCheck> trained();

// The checks of algebra(); what each clause's mistake is stands above its definition.
Claim packed_product(const AlgebraCase& a);  // 004.1
Claim scores_add_up(const AlgebraCase& a);   // 004.2
Claim outputs_differ(const AlgebraCase& a);  // 004.3
Claim blocks(const AlgebraCase& a);          // 004.4
Claim memory(const AlgebraCase& a);          // 004.5
Claim walk(const AlgebraCase& a);            // 004.6

/// 004.2, trained: the weights of the heads of a trained encoder beside those of one head with the same
/// numbers.
Claim scores_of_a_sentence(ArmRunner& runner);

}  // namespace mh::one_product
