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

std::vector<uint64_t> first(const std::vector<uint64_t>& seeds, size_t count) {
  return {seeds.begin(), seeds.begin() + static_cast<ptrdiff_t>(count)};
}

int best_of(const std::map<int, double>& losses) {
  return std::min_element(losses.begin(), losses.end(),
                          [](const auto& a, const auto& b) { return a.second < b.second; })
      ->first;
}

int worst_of(const std::map<int, double>& losses) {
  return std::max_element(losses.begin(), losses.end(),
                          [](const auto& a, const auto& b) { return a.second < b.second; })
      ->first;
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

double ArmRunner::validation_loss(const Arm& arm, const std::vector<uint64_t>& seeds) const {
  double sum = 0;
  for (const uint64_t seed : seeds) {
    const ArmRun run = *find(arm, seed);
    sum += run.diverged > 0 ? std::numeric_limits<double>::infinity() : run.curve.back().loss;
  }
  return sum / static_cast<double>(seeds.size());
}

std::vector<std::map<int, double>> ArmRunner::search(
    const std::vector<Arm*>& arms, const std::function<Arm(const Arm&, int power)>& changed) {
  const std::vector<uint64_t> first_seed = first(seeds(), 1), some = first(seeds(), settings_.rate_seeds);
  const auto trial = [&](const Arm& arm, int power) {
    Arm other = changed(arm, power);
    other.updates *= settings_.rate_updates;
    return other;
  };
  std::vector<std::map<int, double>> losses(arms.size());
  for (;;) {
    std::vector<Arm> trials;
    std::vector<std::pair<size_t, int>> tried;
    for (size_t i = 0; i < arms.size(); ++i) {
      const std::optional<int> power = next_to_try(losses[i]);
      if (!power) continue;
      tried.emplace_back(i, *power);
      trials.push_back(trial(*arms[i], *power));
    }
    if (trials.empty()) break;
    prepare(trials, first_seed);
    for (size_t t = 0; t < trials.size(); ++t)
      losses[tried[t].first][tried[t].second] = validation_loss(trials[t], first_seed);
  }
  // One seed may be lucky: the two best are compared again.
  std::vector<Arm> again;
  for (size_t i = 0; i < arms.size(); ++i) {
    while (losses[i].size() > 2) losses[i].erase(worst_of(losses[i]));
    for (const auto& [power, one] : losses[i]) again.push_back(trial(*arms[i], power));
  }
  prepare(again, some);
  for (size_t i = 0; i < arms.size(); ++i) {
    for (auto& [power, one] : losses[i]) one = validation_loss(trial(*arms[i], power), some);
  }
  return losses;
}

void ArmRunner::compare_in_full(const std::vector<Arm*>& arms, std::vector<std::map<int, double>>& losses) {
  const std::vector<uint64_t> some = first(seeds(), settings_.rate_seeds);
  std::vector<std::pair<size_t, int>> compared;
  std::vector<Arm> whole;
  for (size_t i = 0; i < arms.size(); ++i) {
    if (best_of(losses[i]) != losses[i].rbegin()->first) continue;
    for (const auto& [power, loss] : losses[i]) {
      compared.emplace_back(i, power);
      whole.push_back(with_rate(*arms[i], power));
    }
  }
  prepare(whole, some);
  for (size_t k = 0; k < whole.size(); ++k)
    losses[compared[k].first][compared[k].second] = validation_loss(whole[k], some);
}

void ArmRunner::tune(const std::vector<Arm*>& arms) {
  if (size() != StudySize::kQuick) {
    auto losses = search(arms, with_rate);
    if (settings_.rate_updates < 1) compare_in_full(arms, losses);
    for (size_t i = 0; i < arms.size(); ++i) *arms[i] = with_rate(*arms[i], best_of(losses[i]));
  }
  std::vector<Arm> tuned;
  for (const Arm* arm : arms) tuned.push_back(*arm);
  prepare(tuned);  // side by side: three seeds of one arm would leave one of two threads without work
}

void ArmRunner::tune(std::vector<Arm>& arms) {
  std::vector<Arm*> all;
  for (Arm& arm : arms) all.push_back(&arm);
  tune(all);
}

Table ArmRunner::tune_weight(std::vector<Arm>& arms) {
  Table table{
      "validation loss of the two best lambdas, at the size's learning rate", {"arm", "lambda", "loss"}, {}};
  if (size() == StudySize::kQuick) {
    tune(arms);
    return table;
  }
  std::vector<Arm*> all;
  for (Arm& arm : arms) all.push_back(&arm);
  const auto losses = search(all, with_weight);
  for (size_t i = 0; i < arms.size(); ++i) {
    arms[i] = with_weight(arms[i], best_of(losses[i]));
    for (const auto& [power, loss] : losses[i])
      table.rows.push_back(
          {arms[i].name, fmt::format("{:.2g}", weight_of(power)), fmt::format("{:.3f}", loss)});
  }
  tune(arms);
  return table;
}

std::string ArmRunner::rate_of(const Arm& arm) const {
  return fmt::format("{:g}", settings_.learning_rate * arm.learning_rate);
}

}  // namespace mh
