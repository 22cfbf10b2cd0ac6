// 003: "what makes the learning in each head unique?"
#pragma once

#include <cstdint>
#include <span>

#include "lab/studies/study.h"

namespace mh::unique_heads {

std::span<const AlgebraCheck> algebra();
/// 003.2's distances, 003.4, 003.5, and the training of 003.6.
std::span<const TrainedCheck> trained();
/// 003.4, of an arm as the others begin and of one whose embeddings begin as small as the positions.
Claim relations(ArmRunner& runner, const Arm& canonical, const Arm& loud_places);
/// 003.5: two values to bring at once, P x_a + R x_b.
Claim averaging_inhibits(uint64_t seed, int updates);

}  // namespace mh::unique_heads
