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
  return std::pow(base, alpha.value_or(1));
}

void check_search(const SearchOptions& options) {
  static_assert(kLargestBeam + 1 <= kMaxCandidates);
  check_settings(options);
  if (options.beam() + 1 + std::ssize(options.end_tokens) > kMaxCandidates) {
    throw UsageError(fmt::format("`beam_size` {} and {} end tokens: expected at most {} in all",
                                 options.beam(), options.end_tokens.size() + 1, kMaxCandidates));
  }
  if (options.n_best > options.beam()) {
    throw UsageError(fmt::format("`n_best`: expected 1 to the beam size {}, got {}; raise `beam_size`",
                                 options.beam(), options.n_best));
  }
  if (options.shortest() > options.longest()) {
    throw UsageError(fmt::format("`min_length`: expected 0 to `max_length` {}, got {}", options.longest(),
                                 options.shortest()));
  }
}

}  // namespace mh
