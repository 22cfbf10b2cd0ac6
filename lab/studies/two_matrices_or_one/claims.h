// 002: "why W^Q and W^K and not one W?"
#pragma once

#include <cstdint>
#include <span>

#include "lab/studies/lab.h"
#include "lab/studies/study.h"

namespace mh {
class EncoderDecoder;
}

namespace mh::two_matrices_or_one {

std::span<const AlgebraCheck> algebra();
/// 002.2, the times of 002.3, 002.4, the training of 002.5, 002.6 of a loaded model, and 002.9.
std::span<const TrainedCheck> trained();

// Those that are files of their own:
Claim one_matrix(const AlgebraCase& a);       // 002.1
Claim numbers_to_keep(const AlgebraCase& a);  // 002.3
Claim stored_afresh(const AlgebraCase& a);    // 002.6, of a folder that it writes itself
Claim times(ArmRunner& runner);               // 002.3: the clock beside the count of multiplications
/// 002.6 of ArmRunner::Options::checkpoint, or of a model trained here. Throws as load_model_folder() does, and
/// UsageError when the model has no encoder.
Claim loaded(ArmRunner& runner);

/// Decides a clause that asks for a difference of at most `limit`.
void decide_equal(Claim& claim, double difference, double limit = 1e-5);

/// Every head's W_i^Q W_i^K^T becomes the nearest matrix of this rank; its query bias follows as well as it can.
void truncate(EncoderDecoder& model, int heads, int64_t rank);

}  // namespace mh::two_matrices_or_one
