#include "multihead/generate/translate.h"

#include <fmt/format.h>

#include "multihead/base/error.h"
#include "multihead/generate/batches.h"
#include "multihead/generate/beam_search.h"
#include "multihead/generate/check_sequences.h"

namespace mh {
namespace {

// All hypotheses of the batch in one teacher-forced pass.
void add_alignments(Transformer& model, Context context, std::span<const std::vector<int32_t>> sources,
                    std::span<const int64_t> batch, const AlignOptions& options,
                    std::vector<std::vector<Hypothesis>>& hypotheses) {
  TokenBatch repeated;
  std::vector<std::vector<int32_t>> targets;
  for (size_t s = 0; s < batch.size(); ++s) {
    for (const Hypothesis& hypothesis : hypotheses[s]) {
      repeated.add(sources[static_cast<size_t>(batch[s])]);
      targets.push_back(hypothesis.tokens);
    }
  }
  const Ragged ragged = Ragged::from_lengths(repeated.lengths);
  auto alignments = align(model, context, {.ids = repeated.ids, .ragged = &ragged, .sentences = {}}, targets, options);
  size_t next = 0;
  for (auto& of_sentence : hypotheses) {
    for (Hypothesis& hypothesis : of_sentence) hypothesis.alignment = std::move(alignments[next++]);
  }
}

}  // namespace

std::vector<std::vector<Hypothesis>> translate(Transformer& model, std::span<const std::vector<int32_t>> sources,
                                               const TranslateOptions& options,
                                               std::span<const std::vector<int32_t>> prefixes) {
  check(options.search);
  if (options.max_batch_tokens < 1) {
    throw UsageError(fmt::format("max batch tokens: expected at least 1, got {}", options.max_batch_tokens));
  }
  if (!prefixes.empty() && prefixes.size() != sources.size()) {
    throw UsageError(fmt::format("prefixes: expected one for each of {} sources, got {}", sources.size(), prefixes.size()));
  }
  if (options.interventions) model.check(*options.interventions);
  check_sequences(sources, "source", model.config().max_positions, model.config().vocabulary_size);

  std::vector<int64_t> lengths;
  lengths.reserve(sources.size());
  for (const auto& source : sources) lengths.push_back(static_cast<int64_t>(source.size()));

  std::vector<std::vector<Hypothesis>> results(sources.size());
  Tape tape;
  const Context context{.tape = tape, .interventions = options.interventions};
  Decoding decoding(model, context);
  int64_t sentences_done = 0;
  for (const auto& batch : batches_by_length(lengths, options.max_batch_tokens)) {
    TokenBatch tokens;
    std::vector<std::vector<int32_t>> prefixes_here;
    for (const int64_t i : batch) {
      tokens.add(sources[static_cast<size_t>(i)]);
      if (!prefixes.empty()) prefixes_here.push_back(prefixes[static_cast<size_t>(i)]);
    }
    const Ragged ragged = Ragged::from_lengths(tokens.lengths);
    const Sequences source{.ids = tokens.ids, .ragged = &ragged, .sentences = {}};
    auto hypotheses = beam_search(decoding, source, options.search, prefixes_here);
    if (options.align) add_alignments(model, context, sources, batch, *options.align, hypotheses);
    for (size_t s = 0; s < batch.size(); ++s) results[static_cast<size_t>(batch[s])] = std::move(hypotheses[s]);
    sentences_done += static_cast<int64_t>(batch.size());
    if (options.progress) options.progress(sentences_done);
  }
  return results;
}

}  // namespace mh
