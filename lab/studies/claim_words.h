// The words of claims, which are data: STUDY/claims.json has each claim as its reader will see it, without figures. A check
// takes the claim from there and puts its figures in.
//
//   Claim claim = claim_without_figures("000.6", {{"heads", "4"}});
//   decide(claim, largest <= 1e-5, fmt::format("largest difference {:.2g}", largest));  // its first clause
//   measure(claim, fmt::format("{:.1f} ms", milliseconds));                             // its second
//   claim.tables[0].rows.push_back({"8", "0.125"});
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "lab/studies/claim.h"

namespace mh {

/// Of id "001.2, trained". {heads} in its words becomes the value of "heads".
Claim claim_without_figures(std::string_view id, const std::map<std::string, std::string>& values = {});

// What was found goes to the clauses in their order: each call is about the first clause that has no figures yet.
/// The clause passes when it is `right`, else it fails.
void decide(Claim& claim, bool right, std::string measured);
/// A clause for which nothing was predicted.
void measure(Claim& claim, std::string measured);
/// The first clause without figures.
Clause& next_clause(Claim& claim);

}  // namespace mh
