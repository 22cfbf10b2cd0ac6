// A study answers one question, e.g. "is the input split or duplicated?", with claims that are checked.
// There is one study for each of the five questions, and one for Table 3 of Vaswani et al. 2017.
//
// A claim is a list of clauses, each with its own verdict (claim.h). An AlgebraCheck builds small layers with
// random weights and measures that formulas hold (lab.h). A TrainedCheck trains models that differ in one thing,
// its arms, with several seeds (arms.h), and compares them (statistics.h). run_study() collects the claims in a
// report; its answer is made of sentences, each of which follows from the verdict of a clause.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lab/studies/claim.h"

namespace mh {

class ArmRunner;

/// The input of an algebraic check.
struct AlgebraCase {
  uint64_t seed = 1;
  /// 1 ...: with the mistake that the check's comment names for this clause, which must then FAIL. 0: none.
  int mistake = 0;
};
struct AlgebraCheck {
  std::string_view id;
  Claim (*run)(const AlgebraCase&);
};

/// A claim that rests on trained models. The runner keeps the trained runs, so that claims and studies share them.
struct TrainedCheck {
  std::string_view id;
  Claim (*run)(ArmRunner& runner);
  /// Compares with published results by BLEU: on real text only.
  bool paper_only = false;
};

/// A sentence of an answer: one of three, by the verdict of a clause.
struct Sentence {
  std::string claim;  // "000.7"
  size_t clause = 0;  // 0: its first
  std::string pass;
  std::string fail = {};       // empty: that of a broken program, for clauses of algebra
  std::string undecided = {};  // empty: nothing is said
};

struct Study {
  std::string name, question;
  std::vector<Sentence> answer;  // of a report of all claims
  std::vector<Sentence> alone;   // of one that lacks some: what can be said of a claim without the others
  std::string picture;           // the claim whose first plot shows the answer
  std::span<const AlgebraCheck> algebra;  // in the order of their ids
  std::span<const TrainedCheck> trained;
};
/// The sentences that follow from the verdicts. REQUIRES: `claims` has all claims and clauses that they name.
std::string answer_of(std::span<const Sentence> sentences, const std::vector<Claim>& claims);

std::span<const Study> studies();
/// Returns a study by name. Throws UsageError listing the names.
const Study& find_study(std::string_view name);

/// Throws UsageError listing the study's claims when one of these, "001.4", is not among them.
void check_claims(const Study& study, const std::vector<std::string>& claims);

struct StudyWatcher {
  std::function<void(const std::string&)> step;  // a line that says which step begins
  std::function<bool()> stop;                    // true: throw Interrupted; runs that are done are kept
};

/// Returns a kept report with what this version says of its figures: question, answer, and what follows from
/// the clauses. Nothing is run. Throws UsageError when there is no such study, FormatError when a claim is
/// missing that the answer needs.
StudyReport redrawn(StudyReport kept);

/// Checks the given claims of a study ("001.4"), or all of them, in the order of their ids. Throws as check_claims() does.
StudyReport run_study(const Study& study, ArmRunner& runner, const std::vector<std::string>& claims = {},
                      const StudyWatcher& watcher = {});

}  // namespace mh
