#include "lab/studies/withdrawn.h"

#include <algorithm>

namespace mh {
namespace {

constexpr WithdrawnResult kWithdrawn[] = {
    {"split-or-project", "000.7",
     "sliced, canonical and wide heads did not start alike. The scores of sliced heads began with four times "
     "the variance of canonical ones, those of wide heads with a tenth, so the start alone may explain what "
     "was said to come from the input."},
    {"diversity", "001.2, trained",
     "the starts were compared with the wrong one. Equal, noisy and copied heads began with larger weights "
     "(Xavier, fans d and d) than the canonical heads beside them (fans d and 3 d)."},
    {"diversity", "001.4, trained",
     "the ways to cut the embedding did not start alike. The scores of slices began with four times the "
     "variance of canonical ones, those of segments of double length with seven times, so the start alone "
     "may explain what was said to come from the cut."},
    {"two-matrices-or-one", "002.2, trained",
     "the claim said that trained heads do not need all of their rank, and tested only the formula. The "
     "published heads needed all of it, 16 of 16."},
    {"unique-heads", "003.4, canonical",
     "the claim said that a head goes from a verb to its object. In the canonical models the best head for "
     "that was 9.3 ± 8.5 points worse than a fixed offset."},
    {"unique-heads", "003.6, trained",
     "the claim said that tied heads are as good as the one head they amount to, and tested only that free "
     "heads are better. The loss of the tied heads was 1.279 ± 0.491 higher than that of the one head."},
};

}  // namespace

std::span<const WithdrawnResult> withdrawn_results() {
  return kWithdrawn;
}

bool is_withdrawn(std::string_view study, std::string_view claim) {
  return std::any_of(std::begin(kWithdrawn), std::end(kWithdrawn), [&](const WithdrawnResult& result) {
    return result.study == study && result.claim == claim;
  });
}

Claim withdrawn_claim(const WithdrawnResult& result) {
  return {.id = std::string(result.claim),
          .verdict = Verdict::kWithdrawn,
          .trained = true,
          .withdrawn = std::string(result.reason)};
}

}  // namespace mh
