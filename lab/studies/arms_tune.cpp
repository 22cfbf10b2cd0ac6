// Which learning rate suits an arm.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include "lab/studies/arms.h"

namespace mh {
namespace {

constexpr int kMostSteps = 5;  // up and down: an end for an arm that learns nothing

int best_of(const std::map<int, double>& losses) {
  return std::ranges::min_element(losses, {}, &std::pair<const int, double>::second)->first;
}

std::vector<Arm*> pointers_to(std::vector<Arm>& arms) {
  std::vector<Arm*> all;
  for (Arm& arm : arms) all.push_back(&arm);
  return all;
}

Arm with_rate(Arm arm, int power) {
  arm.learning_rate = std::ldexp(1.0, power);
  return arm;
}

double weight_of(int power) {
  return std::pow(10, power / 2.0);
}

Arm with_weight(Arm arm, int power) {
  arm.disagreement_weight = static_cast<float>(weight_of(power));
  return arm;
}

}  // namespace

std::optional<int> next_to_try(const std::map<int, double>& losses) {
  for (const int power : {0, 1}) {
    if (!losses.contains(power)) return power;
  }
  const int best = best_of(losses);
  if (best == losses.begin()->first && best > -kMostSteps) return best - 1;
  if (best == losses.rbegin()->first && best < kMostSteps) return best + 1;
  return std::nullopt;
}

void ArmRunner::compare(const std::vector<Trial>& trials, size_t seeds) {
  const std::vector<uint64_t> some(settings_.seeds.begin(),
                                   settings_.seeds.begin() + static_cast<ptrdiff_t>(seeds));
  std::vector<Arm> arms;
  for (const Trial& trial : trials) arms.push_back(trial.arm);
  prepare(arms, some);
  for (const Trial& trial : trials) {
    double sum = 0;
    for (const uint64_t seed : some) {
      const ArmRun run = *log_.find(identity(trial.arm, seed));
      sum += run.diverged > 0 ? std::numeric_limits<double>::infinity() : run.curve.back().loss;
    }
    trial.losses[trial.power] = sum / static_cast<double>(seeds);
  }
}

std::vector<ArmRunner::Losses> ArmRunner::search(const std::vector<Arm*>& arms,
                                                 const std::function<Arm(const Arm&, int power)>& changed) {
  std::vector<Losses> losses(arms.size());
  std::vector<Trial> trials;
  const auto add = [&](size_t i, int power) {
    trials.push_back({losses[i], power, changed(*arms[i], power)});
    trials.back().arm.updates *= settings_.rate_updates;
  };
  do {
    trials.clear();
    for (size_t i = 0; i < arms.size(); ++i) {
      if (const std::optional<int> power = next_to_try(losses[i])) add(i, *power);
    }
    compare(trials, 1);
  } while (!trials.empty());
  // One seed may be lucky: the two best are compared again.
  for (size_t i = 0; i < arms.size(); ++i) {
    while (losses[i].size() > 2)
      losses[i].erase(std::ranges::max_element(losses[i], {}, &Losses::value_type::second));
    for (const auto& [power, one] : losses[i]) add(i, power);
  }
  compare(trials, settings_.rate_seeds);
  return losses;
}

void ArmRunner::tune(const std::vector<Arm*>& arms) {
  if (size() != StudySize::kQuick) {
    std::vector<Losses> losses = search(arms, with_rate);
    // A short training is suited by a higher rate than a whole one (Bjorck et al. 2025, arXiv 2409.19913). So
    // where the higher of an arm's two best rates won the short trials, both are trained in full, and their
    // losses take the place of the trials'.
    std::vector<Trial> whole;
    for (size_t i = 0; i < arms.size() && settings_.rate_updates < 1; ++i) {
      if (best_of(losses[i]) != losses[i].rbegin()->first) continue;
      for (const auto& [power, loss] : losses[i])
        whole.push_back({losses[i], power, with_rate(*arms[i], power)});
    }
    compare(whole, settings_.rate_seeds);
    for (size_t i = 0; i < arms.size(); ++i) *arms[i] = with_rate(*arms[i], best_of(losses[i]));
  }
  std::vector<Arm> tuned;
  for (const Arm* arm : arms) tuned.push_back(*arm);
  prepare(tuned);  // side by side: three seeds of one arm would leave one of two threads without work
}

void ArmRunner::tune(std::vector<Arm>& arms) {
  tune(pointers_to(arms));
}

Table ArmRunner::tune_weight(std::vector<Arm>& arms) {
  Table table{
      "validation loss of the two best lambdas, at the size's learning rate", {"arm", "lambda", "loss"}, {}};
  if (size() != StudySize::kQuick) {
    const std::vector<Losses> losses = search(pointers_to(arms), with_weight);
    for (size_t i = 0; i < arms.size(); ++i) {
      arms[i] = with_weight(arms[i], best_of(losses[i]));
      for (const auto& [power, loss] : losses[i])
        table.rows.push_back(
            {arms[i].name, fmt::format("{:.2g}", weight_of(power)), fmt::format("{:.3f}", loss)});
    }
  }
  tune(arms);
  return table;
}

std::string ArmRunner::rate_of(const Arm& arm) const {
  return fmt::format("{:g}", settings_.learning_rate * arm.learning_rate);
}

}  // namespace mh
