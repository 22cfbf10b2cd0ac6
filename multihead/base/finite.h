// A result that is not finite is no result. Finite weights may overflow on the way, so what a model gives
// (states, vectors, logits, probabilities) is checked here before anybody sees it.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "multihead/base/error.h"
#include "multihead/base/matrix_view.h"

namespace mh {

/// Whether none of the numbers is infinite or NaN.
bool all_finite(std::span<const float> numbers);
bool all_finite(ConstMatrixView numbers);

/// Why they are not, as far as anybody knows.
enum class Blame {
  kWeights,  // "its weights may be damaged"
  kEdits,    // somebody changed values inside the model: what was put there may be too large
};

class NotFinite : public Error {
 public:
  NotFinite(std::string_view what, Blame blame);
  /// What is not finite.
  const std::string& numbers() const { return numbers_; }

 private:
  std::string numbers_;
};

/// Throws NotFinite: "the model's WHAT are not finite numbers; its weights may be damaged".
[[noreturn]] void throw_not_finite(std::string_view what, Blame blame = Blame::kWeights);
/// Throws the same unless all numbers are finite.
void require_finite(std::span<const float> numbers, std::string_view what, Blame blame = Blame::kWeights);
void require_finite(ConstMatrixView numbers, std::string_view what, Blame blame = Blame::kWeights);

}  // namespace mh
