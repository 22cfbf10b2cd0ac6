#include "multihead/generate/search.h"

#include <fmt/format.h>

#include <cmath>
#include <iterator>

#include "multihead/base/error.h"
#include "multihead/io/check_option.h"
#include "multihead/models/vocabulary_head.h"

namespace mh {

double LengthPenalty::factor(int32_t length) const {
  const double base = form == Form::kGnmt ? (5.0 + length) / 6.0 : static_cast<double>(length);
  return std::pow(base, alpha);
}

void check_search(const SearchOptions& options) {
  static_assert(kLargestBeam + 1 <= kMaxCandidates);
  if (options.beam_size < 1 || options.beam_size > kLargestBeam) {
    throw UsageError(fmt::format("beam size: expected 1 to {}, got {}", kLargestBeam, options.beam_size));
  }
  if (options.beam_size + 1 + std::ssize(options.end_tokens) > kMaxCandidates) {
    throw UsageError(fmt::format("beam size {} and {} end tokens: expected at most {} in all",
                                 options.beam_size, options.end_tokens.size() + 1, kMaxCandidates));
  }
  if (options.n_best < 1 || options.n_best > options.beam_size) {
    throw UsageError(fmt::format("n-best: expected 1 to the beam size {}, got {}; raise the beam size",
                                 options.beam_size, options.n_best));
  }
  if (options.max_length < 1)
    throw UsageError(fmt::format("max length: expected at least 1, got {}", options.max_length));
  if (options.min_length < 0 || options.min_length > options.max_length) {
    throw UsageError(fmt::format("min length: expected 0 to the max length {}, got {}", options.max_length,
                                 options.min_length));
  }
  check_option("length_penalty", options.length_penalty.alpha, {.low = -100, .high = 100});
  check_option("max_length_factor", options.max_length_factor, {.low = 0});
}

}  // namespace mh
