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

/// A text as it stands between the quotes of JSON.
std::string inside_json(const std::string& text) {
  const std::string quoted =
      nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return quoted.substr(1, quoted.size() - 2);
}

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
  for (size_t at = 0; (at = words.find('{', at)) != std::string::npos;) {
    const size_t end = words.find('}', at);
    const auto value = values.find(words.substr(at + 1, end - at - 1));
    const bool brace = value == values.end();  // of JSON, or of a formula
    const std::string text = brace ? "{" : inside_json(value->second);
    words.replace(at, brace ? 1 : end - at + 1, text);
    at += text.size();
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
