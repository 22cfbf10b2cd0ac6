// 001: "how are heads initialised in a diverse way, and how is that preserved?"
#pragma once

#include "multihead/studies/study.h"

namespace mh::diversity {

std::span<const AlgebraCheck> algebra();
/// 001.1, the training of 001.2 and 001.4, 001.3, 001.5.
std::span<const TrainedCheck> trained();

}  // namespace mh::diversity
