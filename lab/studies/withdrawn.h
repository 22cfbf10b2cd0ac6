// Published results of the studies that do not stand. They are not run, and every report says in one line
// that they are withdrawn and why.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "lab/studies/claim.h"

namespace mh {

struct WithdrawnResult {
  std::string_view study;   // "split-or-project"
  std::string_view claim;   // "000.7"; a trained check of this id is not run
  std::string_view reason;  // a sentence
};
std::span<const WithdrawnResult> withdrawn_results();

bool is_withdrawn(std::string_view study, std::string_view claim);

/// The claim that stands in a report in its place: id, verdict and reason, nothing else.
Claim withdrawn_claim(const WithdrawnResult& result);

}  // namespace mh
