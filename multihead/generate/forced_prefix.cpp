#include "multihead/generate/forced_prefix.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "multihead/base/error.h"

namespace mh {
ForcedPrefix::ForcedPrefix(const LanguageModel& model, std::span<const std::vector<int32_t>> prefixes)
    : model_(model), prefixes_(prefixes) {
  for (const auto& prefix : prefixes) longest_ = std::max(longest_, static_cast<int32_t>(prefix.size()));
}

void ForcedPrefix::check(int32_t s, int32_t longest, std::optional<int32_t> first) const {
  if (longest_ == 0) return;
  const auto& prefix = prefixes_[static_cast<size_t>(s)];
  if (prefix.size() > static_cast<size_t>(longest)) {
    throw UsageError(
        fmt::format("prefix of {} tokens: expected at most the longest length {}", prefix.size(), longest));
  }
  if (first && !prefix.empty() && prefix.front() != *first) {
    throw UsageError(
        fmt::format("prefix: it begins with token {}, and all translations of this model with {} "
                    "(forced_bos_token_id); put that before it",
                    prefix.front(), *first));
  }
  for (const int32_t token : prefix) {
    const ModelFacts facts = model_.facts();
    if (token < 0 || token >= facts.vocabulary || token == facts.eos_id) {
      throw UsageError(fmt::format("prefix: expected tokens from 0 to {} other than the end token {}, got {}",
                                   facts.vocabulary - 1, facts.eos_id, token));
    }
  }
}

bool ForcedPrefix::holds_all(int32_t step, std::span<const int32_t> sources) const {
  return step < longest_ &&
         std::all_of(sources.begin(), sources.end(), [&](int32_t s) { return holds(step, s); });
}

void ForcedPrefix::force(int32_t step, std::span<const int32_t> sources, Decoding& decoding,
                         int32_t candidates_a_row, std::span<Candidate> candidates) {
  if (step >= longest_) return;
  rows_.clear();
  tokens_.clear();
  for (size_t row = 0; row < sources.size(); ++row) {
    if (!holds(step, sources[row])) continue;
    rows_.push_back(static_cast<int32_t>(row));
    tokens_.push_back(prefixes_[static_cast<size_t>(sources[row])][static_cast<size_t>(step)]);
  }
  if (rows_.empty()) return;
  const std::vector<float> found =
      decoding.next_words().log_probabilities(rows_, tokens_, decoding.scratch());
  for (size_t i = 0; i < rows_.size(); ++i) {
    Candidate* out = candidates.data() + int64_t{rows_[i]} * candidates_a_row;
    std::fill(out, out + candidates_a_row, Candidate{0, -std::numeric_limits<float>::infinity()});
    *out = {tokens_[i], found[i]};
  }
}

}  // namespace mh
