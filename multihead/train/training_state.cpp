#include "multihead/train/training_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>

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

namespace {

// Of sums since the last line of metrics. A loss a token is a float, and a sentence has at least its end token.
void check_sums(std::vector<std::string>& found, const TrainingState& state) {
  const auto tokens = static_cast<double>(state.target_tokens);
  const double most = tokens * static_cast<double>(std::numeric_limits<float>::max());
  constexpr double kRounding = 1e-3;  // a token; where the model is certain the loss is 0 but for rounding
  for (const auto& [name, loss] : {std::pair{"smoothed_loss", state.smoothed_loss},
                                   {"negative_log_likelihood", state.negative_log_likelihood}}) {
    if (!(loss >= -kRounding * tokens && loss <= most))
      found.push_back(fmt::format("{} is {}, which {} target tokens cannot sum to", name, loss, tokens));
  }
  constexpr int64_t kLongest = int64_t{1} << 20;  // tokens of a sentence
  for (const auto& [name, count] :
       {std::pair{"target_tokens", state.target_tokens}, {"source_tokens", state.source_tokens}}) {
    if (count < state.sentences || (count + kLongest - 1) / kLongest > state.sentences)
      found.push_back(fmt::format("{} is {}, which {} sentences cannot have", name, count, state.sentences));
  }
  if (state.sentences > 0 && state.update == 0)
    found.push_back(fmt::format("sentences is {} before the first update", state.sentences));
}

void check_validations(std::vector<std::string>& found, const TrainingState& state) {
  int64_t before = 0;
  for (size_t i = 0; i < state.validations.size(); ++i) {
    const Validation& v = state.validations[i];
    const auto wrong = [&](std::string_view field, const std::string& what) {
      found.push_back(fmt::format("validations[{}].{} is {}", i, field, what));
    };
    if (v.update <= before || v.update > state.update) {
      constexpr int64_t kMost = std::numeric_limits<int64_t>::max();  // a damaged file may have it
      wrong("update",
            fmt::format("{}; expected {} to {}", v.update, before + (before < kMost ? 1 : 0), state.update));
    }
    before = v.update;
    constexpr double kLargestLoss = std::numeric_limits<float>::max(), kRounding = 1e-3;
    if (!(v.loss >= -kRounding && v.loss <= kLargestLoss)) {
      wrong("loss", fmt::format("{}; expected at least 0", v.loss));
    } else if (const double expected = perplexity_of(v.loss);
               !(std::abs(v.perplexity - expected) <= 1e-6 * expected)) {
      wrong("perplexity", fmt::format("{}; e^loss is {}", v.perplexity, expected));
    }
    if (v.bleu && !(*v.bleu >= 0 && *v.bleu <= 100 + kRounding))
      wrong("bleu", fmt::format("{}; expected 0 to 100", *v.bleu));
  }
}

// Two fingerprints at most, each of 16 hexadecimal digits, or none of a corpus that nobody has described.
bool is_fingerprint(std::string_view data) {
  constexpr size_t kDigits = 16;
  if (data.empty()) return true;
  if (data.size() != kDigits && data.size() != 2 * kDigits + 1) return false;
  for (size_t i = 0; i < data.size(); ++i) {
    const bool digit =
        i == kDigits ? data[i] == '-' : std::isxdigit(static_cast<unsigned char>(data[i])) != 0;
    if (!digit) return false;
  }
  return true;
}

}  // namespace

double perplexity_of(double loss) {
  constexpr double kLargestExponent = 700;  // e^709 is the largest double
  return std::exp(std::min(loss, kLargestExponent));
}

std::vector<std::string> problems_of(const TrainingState& state) {
  std::vector<std::string> found;
  if (state.epoch > state.update)
    found.push_back(fmt::format("epoch is {}, more than the {} updates made", state.epoch, state.update));
  check_sums(found, state);
  check_validations(found, state);
  if (!is_fingerprint(state.data)) found.emplace_back("data is no fingerprint of a text");
  return found;
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
