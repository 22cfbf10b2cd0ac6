#include "multihead/generate/score.h"

#include <fmt/format.h>

#include "multihead/base/error.h"
#include "multihead/generate/batches.h"
#include "multihead/generate/check_sequences.h"

namespace mh {

std::vector<std::vector<float>> score(const EncoderDecoder& model,
                                      std::span<const std::vector<int32_t>> sources,
                                      std::span<const std::vector<int32_t>> targets,
                                      const ScoreOptions& options) {
  if (sources.size() != targets.size()) {
    throw UsageError(fmt::format("{} sources but {} targets; they are translations of each other, one by one",
                                 sources.size(), targets.size()));
  }
  if (options.max_batch_tokens < 1) {
    throw UsageError(fmt::format("max batch tokens: expected at least 1, got {}", options.max_batch_tokens));
  }
  const EncoderDecoderConfig& config = model.config();
  if (options.interventions) model.check(*options.interventions);
  check_sequences(sources, "source", config.max_positions, config.vocabulary_size);
  check_sequences(targets, "target", config.max_positions - 1,
                  config.target_vocabulary());  // the start token comes before

  std::vector<int64_t> lengths;
  lengths.reserve(sources.size());
  for (size_t i = 0; i < sources.size(); ++i) {
    if (sources[i].empty())
      throw UsageError(fmt::format("source {}: no tokens, not even the end token", i + 1));
    lengths.push_back(static_cast<int64_t>(sources[i].size() + targets[i].size() + 1));
  }

  std::vector<std::vector<float>> results(sources.size());
  Tape tape;
  Context context{.tape = tape, .interventions = options.interventions};
  VocabularyScratch scratch;
  int64_t sentences_done = 0;
  for (const auto& batch : batches_by_length(lengths, options.max_batch_tokens)) {
    TokenBatch source, target_in, target_out;
    for (const int64_t i : batch) {
      source.add(sources[static_cast<size_t>(i)]);
      std::vector<int32_t> shifted = targets[static_cast<size_t>(i)];
      shifted.push_back(config.eos_id);
      target_out.add(shifted);
      shifted.pop_back();
      shifted.insert(shifted.begin(), config.decoder_start_id);
      target_in.add(shifted);
    }
    const Ragged source_ragged = Ragged::from_lengths(source.lengths);
    const Ragged target_ragged = Ragged::from_lengths(target_in.lengths);
    tape.clear();
    const std::vector<float> all = model.log_probabilities(
        context, {.ids = source.ids, .ragged = &source_ragged, .sentences = {}},
        {.ids = target_in.ids, .ragged = &target_ragged, .sentences = {}}, target_out.ids, scratch);
    for (size_t s = 0; s < batch.size(); ++s) {
      const auto sequence = static_cast<int32_t>(s);
      results[static_cast<size_t>(batch[s])].assign(all.begin() + target_ragged.begin(sequence),
                                                    all.begin() + target_ragged.end(sequence));
    }
    sentences_done += static_cast<int64_t>(batch.size());
    if (options.progress) options.progress(sentences_done);
  }
  return results;
}

}  // namespace mh
