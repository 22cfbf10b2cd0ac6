#include "lab/studies/claim.h"

#include <algorithm>
#include <charconv>
#include <utility>

namespace mh {

std::string_view verdict_name(Verdict verdict) {
  return name_of(verdict, kVerdictNames);
}

std::string_view evidence_name(Evidence evidence) {
  return name_of(evidence, kEvidenceNames);
}

std::string_view original_statement_name(OriginalStatement statement) {
  return name_of(statement, kOriginalStatementNames);
}

void settle(Claim& claim) {
  const auto any = [&](Verdict verdict) {
    return std::any_of(claim.clauses.begin(), claim.clauses.end(),
                       [&](const Clause& clause) { return clause.verdict == verdict; });
  };
  claim.verdict = any(Verdict::kFail)                                ? Verdict::kFail
                  : any(Verdict::kUndecided)                         ? Verdict::kUndecided
                  : any(Verdict::kPass)                              ? Verdict::kPass
                  : any(Verdict::kMeasured) || claim.clauses.empty() ? Verdict::kMeasured
                                                                     : Verdict::kWithdrawn;
  claim.kind = Evidence::kAlgebra;
  int favour = 0, against = 0, open = 0;
  for (const Clause& clause : claim.clauses) {
    if (clause.kind == Evidence::kTrained) claim.kind = Evidence::kTrained;
    if (clause.original == OriginalSays::kNothing || clause.verdict == Verdict::kMeasured ||
        clause.verdict == Verdict::kWithdrawn)
      continue;
    const bool same = clause.original == OriginalSays::kSame;
    if (clause.verdict == Verdict::kUndecided) {
      ++open;
    } else {
      ++(same == (clause.verdict == Verdict::kPass) ? favour : against);
    }
  }
  claim.original_statement = favour > 0 && against > 0 ? OriginalStatement::kHalfRight
                             : open > 0                ? OriginalStatement::kOpen
                             : favour > 0              ? OriginalStatement::kRight
                             : against > 0             ? OriginalStatement::kWrong
                                                       : OriginalStatement::kNotMade;
}

std::string clause_letter(size_t index) {
  return {'(', static_cast<char>('a' + index % 26), ')'};
}

int StudyReport::count(Verdict verdict) const {
  int count = 0;
  for (const Claim& claim : claims) {
    count += static_cast<int>(std::count_if(claim.clauses.begin(), claim.clauses.end(),
                                            [&](const Clause& c) { return c.verdict == verdict; }));
  }
  return count;
}

bool comes_before(std::string_view a, std::string_view b) {
  const auto number_of =
      [](std::string_view id) {  // "001.10, trained": 10; 0 where there is none ("table 3")
        int number = 0;
        const size_t dot = id.find('.');
        if (dot != std::string_view::npos)
          std::from_chars(id.data() + dot + 1, id.data() + id.size(), number);
        return number;
      };
  return std::pair(number_of(a), a) < std::pair(number_of(b), b);
}

}  // namespace mh
