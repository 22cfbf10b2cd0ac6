// The studies: one for each of the five questions, and the paper's Table 3.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "multihead/studies/claim.h"

namespace mh {

class ArmRunner;
struct Arm;

/// What an algebraic check is run on.
struct AlgebraCase {
  uint64_t seed = 1;
  bool mistaken = false;  // with the mistake that its comment names: then it must say FAIL
};
struct AlgebraCheck {
  std::string_view id;
  Claim (*run)(const AlgebraCase&);
};

struct Study {
  std::string_view name, question;
  std::string_view answer;                // in plain words
  std::span<const AlgebraCheck> algebra;  // in the order of their ids
  /// What is trained, and the claims that rest on it. Studies share runs by way of the runner.
  std::vector<Arm> (*arms)(const ArmRunner& runner);
  std::vector<Claim> (*trained)(ArmRunner& runner);
  /// Two sentences; all claims are there.
  std::string (*conclusion)(const std::vector<Claim>& claims);
};
std::span<const Study> studies();
/// Throws UsageError listing the names.
const Study& find_study(std::string_view name);

struct StudyWatcher {
  std::function<void(const std::string&)> step;  // a line: what begins
  std::function<bool()> stop;                    // true: throw Interrupted; runs that are done are kept
};

/// All claims of a study, in the order of their ids.
StudyReport run_study(const Study& study, ArmRunner& runner, const StudyWatcher& watcher = {});

}  // namespace mh
