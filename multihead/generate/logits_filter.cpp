#include "multihead/generate/logits_filter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_set>
#include <utility>

#include "multihead/base/error.h"
#include "multihead/base/finite.h"
#include "multihead/generate/repeated_ngrams.h"
#include "multihead/io/check_option.h"

namespace mh {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();

float largest(std::span<const float> logits) {
  float most = kNever;
  for (const float logit : logits) {
    // Not-a-number compares false with everything; it must not be left out quietly.
    if (!(logit <= std::numeric_limits<float>::max())) throw_not_finite("logits");
    most = std::max(most, logit);
  }
  if (most == kNever) throw Error("no token may come next: all are suppressed");
  return most;
}

}  // namespace

LogitsFilter suppress(std::vector<int32_t> tokens) {
  return [tokens = std::move(tokens)](std::span<const int32_t>, std::span<float> logits) {
    for (const int32_t token : tokens) {
      if (token >= 0 && static_cast<size_t>(token) < logits.size())
        logits[static_cast<size_t>(token)] = kNever;
    }
  };
}

LogitsFilter repetition_penalty(double penalty) {
  return [r = static_cast<float>(penalty)](std::span<const int32_t> tokens, std::span<float> logits) {
    std::unordered_set<int32_t> done;
    for (const int32_t token : tokens) {
      if (!done.insert(token).second) continue;
      float& logit = logits[static_cast<size_t>(token)];
      logit = logit < 0 ? logit * r : logit / r;
    }
  };
}

LogitsFilter no_repeat_ngram(int32_t n) {
  return [n](std::span<const int32_t> tokens, std::span<float> logits) {
    std::vector<int32_t> repeated;
    tokens_that_repeat(tokens, n, repeated);
    for (const int32_t token : repeated) logits[static_cast<size_t>(token)] = kNever;
  };
}

LogitsFilter temperature(double temperature) {
  return [t = static_cast<float>(temperature)](std::span<const int32_t>, std::span<float> logits) {
    for (float& logit : logits) logit /= t;
  };
}

LogitsFilter top_k(int32_t k) {
  return [k](std::span<const int32_t>, std::span<float> logits) {
    if (static_cast<size_t>(k) >= logits.size()) return;
    std::vector<float> sorted(logits.begin(), logits.end());
    const auto kth = sorted.begin() + (k - 1);
    std::nth_element(sorted.begin(), kth, sorted.end(), std::greater<>());
    for (float& logit : logits) {
      if (logit < *kth) logit = kNever;
    }
  };
}

LogitsFilter top_p(double p) {
  return [p](std::span<const int32_t>, std::span<float> logits) {
    const float most = largest(logits);
    std::vector<std::pair<double, int32_t>> tokens;  // exp(l_w - max l), w
    double sum = 0;
    for (size_t w = 0; w < logits.size(); ++w) {
      if (logits[w] == kNever) continue;
      tokens.emplace_back(std::exp(static_cast<double>(logits[w] - most)), static_cast<int32_t>(w));
      sum += tokens.back().first;
    }
    const auto before = [](const auto& a, const auto& b) {
      return a.first != b.first ? a.first > b.first : a.second < b.second;
    };
    // Mostly a few tokens have nearly all of the probability: sort no more than these.
    size_t kept = 0, sorted = 0;
    double above = 0;  // the probability of those that are kept, times `sum`
    while (kept < tokens.size() && (kept == 0 || above < p * sum)) {
      if (kept == sorted) {
        const auto begin = tokens.begin() + static_cast<std::ptrdiff_t>(sorted);
        sorted = std::min(tokens.size(), std::max<size_t>(64, 4 * sorted));
        std::partial_sort(begin, tokens.begin() + static_cast<std::ptrdiff_t>(sorted), tokens.end(), before);
      }
      above += tokens[kept++].first;
    }
    for (size_t i = kept; i < tokens.size(); ++i) logits[static_cast<size_t>(tokens[i].second)] = kNever;
  };
}

LogitsFilter min_p(double share) {
  return [share](std::span<const int32_t>, std::span<float> logits) {
    // p_w / max p = exp(l_w - max l)
    const double least = static_cast<double>(largest(logits)) + std::log(share);
    for (float& logit : logits) {
      if (static_cast<double>(logit) < least) logit = kNever;
    }
  };
}

std::vector<LogitsFilter> logits_filters(const LogitsFilterOptions& options) {
  check_settings(options);
  std::vector<LogitsFilter> filters;
  if (!options.suppressed.empty()) filters.push_back(suppress(options.suppressed));
  if (options.repetition_penalty != 1) filters.push_back(repetition_penalty(options.repetition_penalty));
  if (const int32_t n = options.no_repeat_ngram.value_or(0); n > 0) filters.push_back(no_repeat_ngram(n));
  if (options.temperature != 1) filters.push_back(temperature(options.temperature));
  if (options.top_k > 0) filters.push_back(top_k(options.top_k));
  if (options.top_p < 1) filters.push_back(top_p(options.top_p));
  if (options.min_p > 0) filters.push_back(min_p(options.min_p));
  return filters;
}

int32_t most_probable(std::span<const float> logits) {
  const float most = largest(logits);
  return static_cast<int32_t>(std::find(logits.begin(), logits.end(), most) - logits.begin());
}

int32_t draw(std::span<const float> logits, double uniform) {
  const auto most = static_cast<double>(largest(logits));
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - most);
  double up_to = 0;
  int32_t last = 0;  // of those that can come: rounding must not end behind it
  for (size_t w = 0; w < logits.size(); ++w) {
    if (logits[w] == kNever) continue;
    last = static_cast<int32_t>(w);
    up_to += std::exp(static_cast<double>(logits[w]) - most);
    if (up_to > uniform * sum) break;
  }
  return last;
}

}  // namespace mh
