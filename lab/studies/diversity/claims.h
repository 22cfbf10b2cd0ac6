// 001: "how are heads initialised in a diverse way, and how is that preserved?"
#pragma once

#include <span>
#include <vector>

#include "lab/studies/study.h"

namespace mh::diversity {

std::span<const AlgebraCheck> algebra();
/// 001.1, the training of 001.2 and 001.4, 001.3, 001.5.
std::span<const TrainedCheck> trained();

Arm canonical_arm(const ArmRunner& runner);
/// 001.4: ways to cut the row, the canonical one first; equal parameters.
std::vector<Arm> segment_arms(const ArmRunner& runner);
Claim segments(ArmRunner& runner);
/// 001.5: single-head models, the canonical one last.
std::vector<Arm> ensemble_arms(const ArmRunner& runner);
Claim ensemble(ArmRunner& runner);

}  // namespace mh::diversity
