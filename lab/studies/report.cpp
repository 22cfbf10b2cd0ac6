#include "lab/studies/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace mh {
namespace {

/// "001.2" of "001.2, trained".
std::string number_in(const std::string& id) {
  return id.substr(0, id.find(','));
}

std::string statement_in_words(OriginalStatement statement) {
  return statement == OriginalStatement::kOpen ? "left open"
                                               : std::string(original_statement_name(statement));
}

/// "(a)", "(a) and (c)", "(a), (b) and (d)".
std::string listed(const std::vector<std::string>& letters) {
  std::string text;
  for (size_t i = 0; i < letters.size(); ++i)
    text += (i == 0 ? "" : i + 1 == letters.size() ? " and " : ", ") + letters[i];
  return text;
}

/// "(a) and (c) say the same and pass"; empty when no clause is so.
std::string clauses_that(const Claim& claim, OriginalSays says, Verdict verdict) {
  std::vector<std::string> letters;
  for (size_t i = 0; i < claim.clauses.size(); ++i) {
    if (claim.clauses[i].original == says && claim.clauses[i].verdict == verdict)
      letters.push_back(clause_letter(i));
  }
  if (letters.empty()) return "";
  const bool one = letters.size() == 1;
  const char* and_so = verdict == Verdict::kPass   ? (one ? "passes" : "pass")
                       : verdict == Verdict::kFail ? (one ? "fails" : "fail")
                                                   : (one ? "is undecided" : "are undecided");
  return fmt::format("{} {} the {} and {}", listed(letters), one ? "says" : "say",
                     says == OriginalSays::kSame ? "same" : "opposite", and_so);
}

}  // namespace

std::string clause_count(const StudyReport& report) {
  const int pass = report.count(Verdict::kPass), fail = report.count(Verdict::kFail),
            undecided = report.count(Verdict::kUndecided), measured = report.count(Verdict::kMeasured),
            withdrawn = report.count(Verdict::kWithdrawn);
  const int all = pass + fail + undecided + measured + withdrawn;
  return fmt::format("{} {}: {} pass, {} fail, {} undecided, {} measured without a prediction{}.{}{}", all,
                     all == 1 ? "clause" : "clauses", pass, fail, undecided, measured,
                     withdrawn > 0 ? fmt::format(", {} withdrawn", withdrawn) : "",
                     report.note.empty() ? "" : " ", report.note);
}

std::string cost_of(const StudyReport& report) {
  if (report.models == 0) return fmt::format("{}; {:.0f} s", report.machine, report.seconds);
  const double minutes = report.training_seconds / 60;
  const std::string time = minutes < 1     ? fmt::format("{:.0f} s", report.training_seconds)
                           : minutes < 120 ? fmt::format("{:.0f} min", minutes)
                                           : fmt::format("{:.1f} hours", minutes / 60);
  return fmt::format("{}; {} {}, trained in {} of processor time; {:.0f} s for the rest", report.machine,
                     report.models, report.models == 1 ? "model" : "models", time, report.seconds);
}

std::string found_in(const Clause& clause) {
  if (clause.measured.empty()) return "";
  return (clause.verdict == Verdict::kWithdrawn ? "withdrawn: " : "measured: ") + clause.measured;
}

Table overview(const StudyReport& report) {
  Table table{.caption = {}, .columns = {"claim", "kind", "verdict", "original statement"}, .rows = {}};
  for (const Claim& claim : report.claims) {
    table.rows.push_back({number_in(claim.id) + " " + claim.statement, std::string(evidence_name(claim.kind)),
                          std::string(verdict_name(claim.verdict)),
                          statement_in_words(claim.original_statement)});
  }
  return table;
}

std::string heading_of(const Claim& claim) {
  return fmt::format("{} {}, {}", number_in(claim.id), verdict_name(claim.verdict),
                     evidence_name(claim.kind));
}

const Plot* picture_of(const StudyReport& report) {
  const auto found = std::find_if(report.claims.begin(), report.claims.end(),
                                  [&](const Claim& claim) { return claim.id == report.picture; });
  return found == report.claims.end() || found->plots.empty() ? nullptr : &found->plots.front();
}

std::string about_the_original(const Claim& claim) {
  std::string text = "No clause of this claim decides what these words say.";
  if (claim.original_statement != OriginalStatement::kNotMade) {
    std::string reasons;
    for (const Verdict verdict : {Verdict::kPass, Verdict::kFail, Verdict::kUndecided}) {
      for (const OriginalSays says : {OriginalSays::kSame, OriginalSays::kOpposite}) {
        const std::string reason = clauses_that(claim, says, verdict);
        if (!reason.empty()) reasons += (reasons.empty() ? "" : "; ") + reason;
      }
    }
    text = fmt::format("{}: {}.", statement_in_words(claim.original_statement), reasons);
    text[0] = static_cast<char>(text[0] - 'a' + 'A');
  }
  return claim.original_remark.empty() ? text : text + " " + claim.original_remark;
}

}  // namespace mh
