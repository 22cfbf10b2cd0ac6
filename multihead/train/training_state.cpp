#include "multihead/train/training_state.h"

#include <fmt/format.h>

#include <algorithm>

namespace mh {

bool better(const Validation& a, const Validation& b, Metric metric) {
  const double bleu_a = a.bleu.value_or(-1), bleu_b = b.bleu.value_or(-1);
  // At first every translation is nonsense and BLEU is 0: then the loss decides.
  if (metric == Metric::kLoss || bleu_a == bleu_b) return a.loss < b.loss;
  return bleu_a > bleu_b;
}

const Validation* best_of(const std::vector<Validation>& validations, Metric metric) {
  const Validation* best = nullptr;
  for (const Validation& validation : validations) {
    if (best == nullptr || better(validation, *best, metric)) best = &validation;
  }
  return best;
}

int32_t stalled(const std::vector<Validation>& validations, Metric metric) {
  const Validation* best = best_of(validations, metric);
  return best == nullptr ? 0 : static_cast<int32_t>(&validations.back() - best);
}

std::vector<std::string> differences(const std::vector<Setting>& before, const std::vector<Setting>& now,
                                     const std::vector<Setting>& usual) {
  std::vector<std::string> clauses;
  const auto find = [](const std::vector<Setting>& settings, const std::string& name) {
    const auto found =
        std::find_if(settings.begin(), settings.end(), [&](const Setting& s) { return s.name == name; });
    return found == settings.end() ? nullptr : &*found;
  };
  const auto shown = [](const std::string& value) {
    return value.empty() ? std::string("not given") : value;
  };
  for (const Setting& setting : now) {
    const Setting* old = find(before, setting.name);
    if (old == nullptr) {
      const Setting* untold = find(usual, setting.name);
      if (untold != nullptr && untold->value == setting.value) continue;
      clauses.push_back(fmt::format("`{}` was unknown, is now {}", setting.name, shown(setting.value)));
    } else if (old->value != setting.value) {
      clauses.push_back(
          fmt::format("`{}` was {}, is now {}", setting.name, shown(old->value), shown(setting.value)));
    }
  }
  for (const Setting& setting : before) {
    if (find(now, setting.name) == nullptr) {
      clauses.push_back(fmt::format("`{}` was {}, is now unknown", setting.name, shown(setting.value)));
    }
  }
  return clauses;
}

}  // namespace mh
