// A study answers one question, e.g. "is the input split or duplicated?", with claims that are checked.
// There is one study for each of the five questions, and one for Table 3 of Vaswani et al. 2017.
//
// A claim rests either on algebra or on training. An AlgebraCheck builds small layers with random weights
// and measures that a formula holds (lab.h). A TrainedCheck trains models that differ in one thing, its
// arms, with several seeds (arms.h), and compares their losses. Each returns a Claim with what was
// measured, the tolerance and the verdict (claim.h). run_study() collects them in a report (report.h).
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
struct Arm;

/// The input of an algebraic check.
struct AlgebraCase {
  uint64_t seed = 1;
  bool mistaken = false;  // with the mistake that the check's comment names: then the verdict must be FAIL
};
struct AlgebraCheck {
  std::string_view id;
  Claim (*run)(const AlgebraCase&);
};

/// A claim that rests on trained models. The runner keeps the trained runs, so that claims and studies
/// share them.
struct TrainedCheck {
  std::string_view id;
  /// What run() needs, so that the arms of all claims are trained as one.
  std::vector<Arm> (*arms)(const ArmRunner& runner);
  Claim (*run)(ArmRunner& runner);
  /// run() gives the arms the learning rates that suit them (ArmRunner::tune), but for the quick size: then
  /// there is nothing to train beforehand.
  bool tunes = false;
};

struct Study {
  std::string_view name, question;
  std::string_view answer;                // in plain words
  std::span<const AlgebraCheck> algebra;  // in the order of their ids
  std::span<const TrainedCheck> trained;
  /// Returns two sentences. REQUIRES: `claims` has all claims of the study.
  std::string (*conclusion)(const std::vector<Claim>& claims);
};
std::span<const Study> studies();
/// Returns a study by name. Throws UsageError listing the names.
const Study& find_study(std::string_view name);

/// Throws UsageError listing the study's claims when one of these, "001.4", is not among them.
void check_claims(const Study& study, const std::vector<std::string>& claims);

struct StudyWatcher {
  std::function<void(const std::string&)> step;  // a line that says which step begins
  std::function<bool()> stop;                    // true: throw Interrupted; runs that are done are kept
};

/// Returns a kept report with the answer, the conclusion and the withdrawn claims of this version; its figures
/// stay, and nothing is run. Throws UsageError when there is no such study, FormatError when a claim is missing
/// that the conclusion needs.
StudyReport redrawn(StudyReport kept);

/// Checks the given claims of a study ("001.4"), or all of them, in the order of their ids. The report of
/// only some claims has no conclusion. Throws as check_claims() does.
StudyReport run_study(const Study& study, ArmRunner& runner, const std::vector<std::string>& claims = {},
                      const StudyWatcher& watcher = {});

}  // namespace mh
