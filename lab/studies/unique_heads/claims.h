// 003: "what makes the learning in each head unique?"
#pragma once

#include <cstdint>
#include <span>

#include "lab/studies/study.h"

namespace mh {
struct Arm;
}

namespace mh::unique_heads {

std::span<const AlgebraCheck> algebra();
/// 003.5: whether one head, or two, can give a query P x_a + R x_b of two other words: what no head can fall below
/// (averaging.h), and the best that training finds from many starts.
Claim averaging_bound(const AlgebraCase& a);
Claim averaging_inhibits(std::span<const uint64_t> draws, int starts, int updates);

/// 003.2's distances, the training of 003.3, 003.4, 003.5, and the training of 003.6.
std::span<const TrainedCheck> trained();
/// 003.4: which relations between words the heads find, in models of two arms and of fresh_seeds(), on
/// fresh_sentences() (relations_found.h). The first embeddings of `canonical` have the usual size; those of
/// `small_embeddings` are as small as the positional encodings.
Claim relations(ArmRunner& runner, const Arm& canonical, const Arm& small_embeddings);

}  // namespace mh::unique_heads
