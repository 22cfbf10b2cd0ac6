// A result that is not finite is no result. Finite weights may overflow on the way, so what a model gives
// (states, vectors, logits, probabilities) is checked here before anybody sees it.
#pragma once

#include <span>
#include <string_view>

#include "multihead/base/matrix_view.h"

namespace mh {

/// Whether none of the numbers is infinite or NaN.
bool all_finite(std::span<const float> numbers);
bool all_finite(ConstMatrixView numbers);

/// Throws Error: "the model's WHAT are not finite numbers; its weights may be damaged".
[[noreturn]] void throw_not_finite(std::string_view what);
/// Throws the same unless all numbers are finite.
void require_finite(std::span<const float> numbers, std::string_view what);
void require_finite(ConstMatrixView numbers, std::string_view what);

}  // namespace mh
