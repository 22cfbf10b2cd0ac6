// How long two models take for the same sequences.
#pragma once

#include <cstdint>
#include <vector>

#include "multihead/models/model.h"

namespace mh {

/// Seconds of one forward pass of all sequences, and of the logits where the model predicts words.
struct PassSeconds {
  double first = 0, second = 0;
  int64_t tokens = 0;  // in a pass, of both sides of a translator
};

/// Runs the models by turns, `rounds` times each after one pass that is not counted, and returns the shortest time of each: what
/// else the machine does makes times longer only. targets: as compare_models() takes them. rounds is at least 1.
PassSeconds compare_speed(const Model& first, const Model& second,
                          const std::vector<std::vector<int32_t>>& sources,
                          const std::vector<std::vector<int32_t>>& targets, int rounds);

}  // namespace mh
