#include "multihead/generate/forced_prefix.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "multihead/base/error.h"
#include "multihead/generate/logits_filter.h"
#include "multihead/models/vocabulary_head.h"

namespace mh {
ForcedPrefix::ForcedPrefix(const LanguageModel& model, std::span<const std::vector<int32_t>> prefixes)
    : model_(model), prefixes_(prefixes) {
  for (const auto& prefix : prefixes) longest_ = std::max(longest_, static_cast<int32_t>(prefix.size()));
}

void ForcedPrefix::check(int32_t s, int32_t longest) const {
  if (longest_ == 0) return;
  const auto& prefix = prefixes_[static_cast<size_t>(s)];
  if (prefix.size() > static_cast<size_t>(longest)) {
    throw UsageError(
        fmt::format("prefix of {} tokens: expected at most the longest length {}", prefix.size(), longest));
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

void ForcedPrefix::force(int32_t step, std::span<const int32_t> sources, ConstMatrixView states,
                         int32_t candidates_a_row, std::span<Candidate> candidates) {
  if (step >= longest_) return;
  rows_.clear();
  states_.clear();
  for (size_t row = 0; row < sources.size(); ++row) {
    if (!holds(step, sources[row])) continue;
    rows_.push_back(row);
    const float* state = states.row(static_cast<int64_t>(row));
    states_.insert(states_.end(), state, state + states.cols);
  }
  if (rows_.empty()) return;
  const auto forced = static_cast<int64_t>(rows_.size());
  const int64_t vocabulary = model_.vocabulary().size();
  logits_.resize(static_cast<size_t>(forced * vocabulary));
  model_.vocabulary().logits({states_.data(), forced, states.cols}, {logits_.data(), forced, vocabulary});
  for (int64_t i = 0; i < forced; ++i) {
    const size_t row = rows_[static_cast<size_t>(i)];
    const int32_t token = prefixes_[static_cast<size_t>(sources[row])][static_cast<size_t>(step)];
    Candidate* out = candidates.data() + row * static_cast<size_t>(candidates_a_row);
    std::fill(out, out + candidates_a_row, Candidate{0, -std::numeric_limits<float>::infinity()});
    *out = {token, log_probability(std::span(logits_).subspan(static_cast<size_t>(i * vocabulary),
                                                              static_cast<size_t>(vocabulary)),
                                   token)};
  }
}

}  // namespace mh
