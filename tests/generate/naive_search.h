// A beam search written as simply as possible: every hypothesis is decoded from its first token again, with
// the whole distribution of the next token. It is slow, and shares no code with the search under test.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "multihead/generate/search.h"
#include "multihead/models/encoder_decoder.h"
#include "multihead/nn/context.h"

namespace mh {

inline std::vector<double> log_softmax(const std::vector<float>& logits) {
  double largest = -std::numeric_limits<double>::infinity(), sum = 0;
  for (const float logit : logits) largest = std::max(largest, static_cast<double>(logit));
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - largest);
  std::vector<double> result;
  for (const float logit : logits) result.push_back(static_cast<double>(logit) - largest - std::log(sum));
  return result;
}

/// log p(next token | source, start token, tokens) for every token of the vocabulary.
inline std::vector<double> next_log_probabilities(EncoderDecoder& model, const std::vector<int32_t>& source,
                                                  std::vector<int32_t> tokens, Sites* sites = nullptr) {
  tokens.insert(tokens.begin(), model.config().decoder_start_id);
  Ragged source_ragged, target_ragged;
  source_ragged.add(static_cast<int32_t>(source.size()));
  target_ragged.add(static_cast<int32_t>(tokens.size()));
  Tape tape;
  Context context{.tape = tape, .sites = sites};
  const Sequences sources{.ids = source, .ragged = &source_ragged, .sentences = {}};
  const Var memory = model.encode(context, sources);
  const Var states =
      model.decode(context, {.ids = tokens, .ragged = &target_ragged, .sentences = {}}, memory, sources);
  std::vector<float> logits(static_cast<size_t>(model.config().target_vocabulary()));
  const ConstMatrixView all = states.value();
  model.vocabulary().logits(all.rows_between(all.rows - 1, all.rows),
                            {logits.data(), 1, static_cast<int64_t>(logits.size())});
  return log_softmax(logits);
}

/// No early end by proof, no length factor: a sentence is done when beam_size hypotheses have ended, as early_stopping says, or at
/// max_length. stop: a token at which hypotheses stop; -1: none.
inline std::vector<Hypothesis> naive_search(EncoderDecoder& model, const std::vector<int32_t>& source,
                                            const SearchOptions& options,
                                            const std::vector<int32_t>& prefix = {}, Sites* sites = nullptr,
                                            int32_t stop = -1) {
  struct Growing {
    std::vector<int32_t> tokens;
    double total = 0;
    std::vector<float> log_probabilities = {};
  };
  struct Continuation {
    size_t row;
    int32_t token;
    double total;
    float log_probability;
  };
  const auto beam = static_cast<size_t>(options.beam());
  const EncoderDecoderConfig& config = model.config();
  std::vector<Growing> growing(1);
  std::vector<Hypothesis> finished;
  for (int32_t step = 0; !growing.empty(); ++step) {
    std::vector<Continuation> all;
    for (size_t row = 0; row < growing.size(); ++row) {
      const auto next = next_log_probabilities(model, source, growing[row].tokens, sites);
      for (int32_t token = 0; token < config.target_vocabulary(); ++token) {
        const bool given = static_cast<size_t>(step) < prefix.size();
        if (given && token != prefix[static_cast<size_t>(step)]) continue;
        if (!given && token != config.eos_id && (token == config.pad_id || token == config.decoder_start_id))
          continue;
        if (token == config.eos_id && step < options.shortest()) continue;
        const double p = next[static_cast<size_t>(token)];
        all.push_back({row, token, growing[row].total + p, static_cast<float>(p)});
      }
    }
    std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.total > b.total; });
    std::vector<Growing> next;
    for (size_t rank = 0; rank < all.size() && next.size() < beam; ++rank) {
      const auto& [row, token, total, log_probability] = all[rank];
      std::vector<int32_t> tokens = growing[row].tokens;
      std::vector<float> log_probabilities = growing[row].log_probabilities;
      log_probabilities.push_back(log_probability);
      const bool ended = token == config.eos_id, stopped = token == stop;
      const bool last = step + 1 == options.longest();
      if (last && rank >= beam) break;
      if (!ended) tokens.push_back(token);
      if ((ended || stopped || last) && rank < beam) {
        finished.push_back({.tokens = tokens,
                            .ended = ended,
                            .stopped = stopped,
                            .log_probability = total,
                            .log_probabilities = log_probabilities,
                            .score = total / options.length_penalty.factor(step + 1)});
      }
      if (!ended && !stopped && !last) next.push_back({tokens, total, log_probabilities});
    }
    growing = std::move(next);
    std::stable_sort(finished.begin(), finished.end(),
                     [](const auto& a, const auto& b) { return a.score > b.score; });
    if (finished.size() < beam || growing.empty()) continue;
    if (beam == 1 || options.early_stopping.value_or(EarlyStopping::kTrue) == EarlyStopping::kTrue) break;
    const LengthPenalty& penalty = options.length_penalty;
    const bool reaches_longest =
        options.early_stopping == EarlyStopping::kNever && penalty.alpha.value_or(1) > 0;
    const int32_t length = reaches_longest ? options.longest() : step + 1;
    if (growing[0].total / penalty.factor(length) <= finished[beam - 1].score) break;
  }
  finished.resize(std::min(finished.size(), static_cast<size_t>(options.n_best)));
  return finished;
}

}  // namespace mh
