#include "multihead/base/finite.h"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>

#include "multihead/base/error.h"
#include "multihead/base/not_finite.h"

namespace mh {

bool all_finite(std::span<const float> numbers) {
  const auto bytes = std::as_bytes(numbers);
  return count_not_finite(bytes.data(), static_cast<int64_t>(numbers.size()), kFloat32Exponent) == 0;
}

bool all_finite(ConstMatrixView numbers) {
  if (numbers.contiguous()) return all_finite({numbers.data, static_cast<size_t>(numbers.size())});
  for (int64_t i = 0; i < numbers.rows; ++i) {
    if (!all_finite({numbers.row(i), static_cast<size_t>(numbers.cols)})) return false;
  }
  return true;
}

NotFinite::NotFinite(std::string_view what, Blame blame)
    : Error(fmt::format(
          "the model's {} are not finite numbers; {}", what,
          blame == Blame::kWeights
              ? "its weights may be damaged"
              : "a gate or a number that was put into it may be too large, or its weights damaged")),
      numbers_(what) {}

void throw_not_finite(std::string_view what, Blame blame) {
  throw NotFinite(what, blame);
}

void require_finite(std::span<const float> numbers, std::string_view what, Blame blame) {
  if (!all_finite(numbers)) throw_not_finite(what, blame);
}

void require_finite(ConstMatrixView numbers, std::string_view what, Blame blame) {
  if (!all_finite(numbers)) throw_not_finite(what, blame);
}

}  // namespace mh
