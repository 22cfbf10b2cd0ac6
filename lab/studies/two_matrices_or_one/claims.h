// 002: "why W^Q and W^K and not one W?"
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>

#include "lab/studies/study.h"

namespace mh {
class EncoderDecoder;
}

namespace mh::two_matrices_or_one {

std::span<const AlgebraCheck> algebra();
/// 002.2, the times of 002.3, 002.4, the training of 002.5, 002.6 of a loaded model, and 002.9.
std::span<const TrainedCheck> trained();

// The checks of algebra(); what each clause's mistake is stands above its definition.
Claim one_matrix(const AlgebraCase& a);       // 002.1
Claim numbers_to_keep(const AlgebraCase& a);  // 002.3
Claim doubled_step(const AlgebraCase& a);     // 002.5
Claim stored_afresh(const AlgebraCase& a);    // 002.6, of a folder that it writes itself
Claim aggcn(const AlgebraCase& a);            // 002.7
Claim bottleneck(const AlgebraCase& a);       // 002.8

// Those of trained() that are files of their own:
Claim times(ArmRunner& runner);        // 002.3: the clock beside the count of multiplications
Claim shared_keys(ArmRunner& runner);  // 002.9: heads that share queries and keys (Cordonnier et al. 2020)
Claim loaded(
    ArmRunner& runner);  // 002.6: stored() of ArmRunner::Options::checkpoint, or of a model trained here
/// 002.6: what a model folder stores of an encoder's first attention. Throws as load_model_folder() does,
/// and UsageError when the model has no encoder.
Claim stored(const std::filesystem::path& folder);
/// 002.6: the same of all heads of all layers of the encoder, in one clause. Throws as stored() does.
Clause every_head(const std::filesystem::path& folder);

/// Every head's W_i^Q W_i^K^T becomes the nearest matrix of this rank; its query bias follows as well as it can.
void truncate(EncoderDecoder& model, int heads, int64_t rank);

}  // namespace mh::two_matrices_or_one
