// The studies: one for each of five questions about heads, and one for the paper's Table 3.
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

/// What an algebraic check is run on.
struct AlgebraCase {
  uint64_t seed = 1;
  bool mistaken = false;  // with the mistake that the check's comment names: then the verdict must be FAIL
};
struct AlgebraCheck {
  std::string_view id;
  Claim (*run)(const AlgebraCase&);
};

/// A claim that rests on trained models. Claims and studies share runs by way of the runner.
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
  /// Two sentences. REQUIRES: all claims are there.
  std::string (*conclusion)(const std::vector<Claim>& claims);
};
std::span<const Study> studies();
/// Throws UsageError listing the names.
const Study& find_study(std::string_view name);

/// Throws UsageError listing the study's claims when one of these, "001.4", is not among them.
void check_claims(const Study& study, const std::vector<std::string>& claims);

struct StudyWatcher {
  std::function<void(const std::string&)> step;  // a line: what begins
  std::function<bool()> stop;                    // true: throw Interrupted; runs that are done are kept
};

/// A report that was kept, with the answer, the conclusion and the withdrawn claims of this version; its
/// figures stay. Nothing is run. Throws UsageError when there is no such study, FormatError when a claim is
/// missing of which the conclusion is drawn.
StudyReport redrawn(StudyReport kept);

/// Some claims of the study by their numbers, "001.4", or all of them; in the order of their ids. Of some
/// there is no conclusion. Throws as check_claims.
StudyReport run_study(const Study& study, ArmRunner& runner, const std::vector<std::string>& claims = {},
                      const StudyWatcher& watcher = {});

}  // namespace mh
