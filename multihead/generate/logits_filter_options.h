// How the logits of the next token are changed before it is chosen; logits_filter.h has the formulas.
#pragma once

#include <cstdint>
#include <vector>

namespace mh {

/// The defaults change nothing.
struct LogitsFilterOptions {
  std::vector<int32_t> suppressed = {};
  double repetition_penalty = 1;  // 1e-6 to 1e6; above 1: what occurred gets less probable
  double temperature = 1;         // 1e-6 to 1e6; below 1: probable tokens get more probable
  int32_t top_k = 0;              // 0: all tokens
  double top_p = 1;               // 0 to 1; 0: the most probable token alone
  double min_p = 0;               // 0 to 1
};

}  // namespace mh
