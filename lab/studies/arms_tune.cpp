// Which learning rate suits an arm.
#include <fmt/format.h>

#include <cstddef>
#include <string>
#include <vector>

#include "lab/studies/arms.h"

namespace mh {

void ArmRunner::tune(const std::vector<Arm*>& arms) {
  if (size() == StudySize::kQuick) return;
  const std::vector<uint64_t> some(seeds().begin(),
                                   seeds().begin() + static_cast<ptrdiff_t>(settings_.rate_seeds));
  const auto trial = [&](const Arm& arm, double factor) {
    Arm other = arm;
    other.learning_rate = factor;
    other.updates *= settings_.rate_updates;
    return other;
  };
  const auto loss = [&](const Arm& arm, double factor) {
    double sum = 0;
    for (const uint64_t seed : some) sum += find(trial(arm, factor), seed)->curve.back().loss;
    return sum;
  };
  std::vector<Arm> tried;
  for (const Arm* arm : arms) {
    for (const double factor : {1.0, 2.0}) tried.push_back(trial(*arm, factor));
  }
  prepare(tried, some);
  tried.clear();
  for (Arm* arm : arms) {
    arm->learning_rate = loss(*arm, 1) < loss(*arm, 2) ? 1 : 2;
    if (arm->learning_rate == 1) tried.push_back(trial(*arm, 0.5));
  }
  prepare(tried, some);
  std::vector<Arm> tuned;
  for (Arm* arm : arms) {
    if (arm->learning_rate == 1 && loss(*arm, 0.5) < loss(*arm, 1)) arm->learning_rate = 0.5;
    tuned.push_back(*arm);
  }
  prepare(tuned);
}

void ArmRunner::tune(std::vector<Arm>& arms) {
  std::vector<Arm*> all;
  for (Arm& arm : arms) all.push_back(&arm);
  tune(all);
}

std::string ArmRunner::rate_of(const Arm& arm) const {
  return fmt::format("{:g}", settings_.learning_rate * arm.learning_rate);
}

}  // namespace mh
