#include "lab/studies/claim_words.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "multihead/base/embed.h"
#include "multihead/base/error.h"
#include "multihead/io/config.h"

// MULTIHEAD_STUDIES is the folder of this file.
MH_EMBED(mh_claims_split, MULTIHEAD_STUDIES "/split_or_project/claims.json");
MH_EMBED(mh_claims_diversity, MULTIHEAD_STUDIES "/diversity/claims.json");
MH_EMBED(mh_claims_two, MULTIHEAD_STUDIES "/two_matrices_or_one/claims.json");
MH_EMBED(mh_claims_unique, MULTIHEAD_STUDIES "/unique_heads/claims.json");
MH_EMBED(mh_claims_one, MULTIHEAD_STUDIES "/one_product/claims.json");
MH_EMBED(mh_claims_table3, MULTIHEAD_STUDIES "/table3/claims.json");

namespace mh {
namespace {

/// The JSON of each claim by its id.
std::map<std::string, std::string> read_claims() {
  std::map<std::string, std::string> claims;
  for (const std::string_view file : {std::string_view(mh_claims_split, mh_claims_split_end),
                                      std::string_view(mh_claims_diversity, mh_claims_diversity_end),
                                      std::string_view(mh_claims_two, mh_claims_two_end),
                                      std::string_view(mh_claims_unique, mh_claims_unique_end),
                                      std::string_view(mh_claims_one, mh_claims_one_end),
                                      std::string_view(mh_claims_table3, mh_claims_table3_end)}) {
    for (const nlohmann::json& claim : nlohmann::json::parse(file))
      claims[claim.at("id").get<std::string>()] = claim.dump();
  }
  return claims;
}

}  // namespace

Claim claim_without_figures(std::string_view id, const std::map<std::string, std::string>& values) {
  static const std::map<std::string, std::string> claims = read_claims();
  std::string words = claims.at(std::string(id));
  for (const auto& [name, value] : values) {
    const std::string place = "{" + name + "}";
    for (size_t at = 0; (at = words.find(place, at)) != std::string::npos; at += value.size())
      words.replace(at, place.size(), value);
  }
  Claim claim;
  from_json(claim, words, "claims.json");
  return claim;
}

Clause& next_clause(Claim& claim) {
  const auto next = std::find_if(claim.clauses.begin(), claim.clauses.end(),
                                 [](const Clause& clause) { return clause.measured.empty(); });
  MH_ASSERT(next != claim.clauses.end());
  return *next;
}

void decide(Claim& claim, bool right, std::string measured) {
  Clause& clause = next_clause(claim);
  clause.measured = std::move(measured);
  clause.verdict = right ? Verdict::kPass : Verdict::kFail;
}

void measure(Claim& claim, std::string measured) {
  next_clause(claim).measured = std::move(measured);
}

}  // namespace mh
