#include "multihead/generate/translate.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>

#include "multihead/base/error.h"
#include "multihead/base/thread_pool.h"
#include "multihead/batch/check_ids.h"
#include "multihead/batch/plan_batches.h"
#include "multihead/generate/beam_search.h"
#include "multihead/io/check_option.h"
#include "multihead/models/decoding.h"
#include "multihead/nn/list_sites.h"

namespace mh {
namespace {

// The first batches are large, for fast products. The last ones are small, so that all threads end together:
// each takes the same part of what is left, for every thread one, but not less than pays for its products.
// Every source token stands for beam_size rows of the decoder.
std::vector<std::vector<int64_t>> shrinking_batches(std::span<const ExampleSize> sizes, int64_t max_tokens,
                                                    int32_t beam_size, int threads) {
  constexpr int64_t kLeastRows = 1024;
  const BatchOptions::Order order = BatchOptions::Order::kLongestFirst;
  if (threads == 1) return plan_batches(sizes, {.max_tokens = max_tokens, .order = order});
  const int64_t least = std::min(max_tokens, std::max<int64_t>(1, kLeastRows / beam_size));
  const auto pieces = plan_batches(sizes, {.max_tokens = least, .order = order});
  const auto most = static_cast<size_t>(max_tokens / least);
  std::vector<std::vector<int64_t>> batches;
  for (size_t next = 0; next < pieces.size();) {
    const size_t left = pieces.size() - next;
    const size_t count = std::clamp<size_t>(left * 2 / 3 / static_cast<size_t>(threads), 1, most);
    auto& batch = batches.emplace_back();
    for (size_t i = 0; i < count; ++i, ++next)
      batch.insert(batch.end(), pieces[next].begin(), pieces[next].end());
  }
  return batches;
}

// All hypotheses of the batch in one teacher-forced pass. here: as the sources of the batch are listed.
void add_alignments(const LanguageModel& model, Tape& tape, std::span<const std::vector<int32_t>> sources,
                    const TranslateOptions& translate_options, ListedBatch here,
                    std::vector<std::vector<Hypothesis>>& hypotheses) {
  const AlignOptions& options = *translate_options.align;
  const std::span<const int64_t> batch = here.texts;
  Batch repeated;
  std::vector<std::vector<int32_t>> targets;
  for (size_t s = 0; s < batch.size(); ++s) {
    for (const Hypothesis& hypothesis : hypotheses[s]) {
      repeated.add(sources[static_cast<size_t>(batch[s])], batch[s]);
      targets.push_back(hypothesis.tokens);
    }
  }
  here.texts = repeated.sentences;
  ListSites listed(translate_options.sites, here);
  const Context context{.tape = tape, .sites = listed.sites()};
  auto alignments = align(model, context, repeated.view(), targets, options);
  size_t next = 0;
  for (auto& of_sentence : hypotheses) {
    for (Hypothesis& hypothesis : of_sentence) hypothesis.alignment = std::move(alignments[next++]);
  }
}

}  // namespace

// What one thread needs.
struct Translator::Worker {
  explicit Worker(const LanguageModel& model) : decoding(model, {.tape = tape}) {}

  Tape tape;
  Decoding decoding;
};

Translator::Translator(const LanguageModel& model) : model_(model) {}
Translator::~Translator() = default;

Translator::Worker& Translator::worker(int number) {
  auto& worker = workers_[static_cast<size_t>(number)];
  if (!worker) worker = std::make_unique<Worker>(model_);
  return *worker;
}

std::vector<std::vector<Hypothesis>> Translator::translate(std::span<const std::vector<int32_t>> sources,
                                                           const TranslateOptions& options,
                                                           std::span<const std::vector<int32_t>> prefixes) {
  check_settings(options);
  check_search(options.search);
  model_.facts().require_translator();
  if (!prefixes.empty() && prefixes.size() != sources.size()) {
    throw UsageError(fmt::format("prefixes: expected one for each of {} sources, got {}", sources.size(),
                                 prefixes.size()));
  }
  if (options.sites) model_.check(*options.sites);
  check_ids(sources, {.what = "source",
                      .longest = model_.facts().max_positions,
                      .vocabulary = model_.facts().source_vocabulary});

  std::vector<ExampleSize> sizes;
  std::vector<int64_t> lengths;
  sizes.reserve(sources.size());
  for (const auto& source : sources) {
    lengths.push_back(std::ssize(source));
    sizes.push_back({.tokens = lengths.back()});
  }
  const ListOffsets offsets = ListOffsets::of_pairs(lengths, {});  // targets are still to come
  const int threads = thread_count();
  const auto batches = shrinking_batches(sizes, options.max_batch_tokens, options.search.beam(), threads);

  std::vector<std::vector<Hypothesis>> results(sources.size());
  std::atomic<int64_t> sentences_done{0};
  const auto translate_batch = [&](int64_t number, int thread) {
    const auto& batch = batches[static_cast<size_t>(number)];
    Batch tokens;
    std::vector<std::vector<int32_t>> prefixes_here;
    for (const int64_t i : batch) {
      tokens.add(sources[static_cast<size_t>(i)], i);
      if (!prefixes.empty()) prefixes_here.push_back(prefixes[static_cast<size_t>(i)]);
    }
    Decoding& decoding = worker(thread).decoding;
    const ListedBatch here{.texts = batch, .count = std::ssize(sources), .offsets = &offsets};
    ListSites listed(options.sites, here);
    decoding.context().sites = listed.sites();
    if (decoding.cache().type() != options.cache) decoding.cache() = StackCache(options.cache);
    auto hypotheses = beam_search(decoding, tokens.view(), options.search, prefixes_here);
    if (options.align) add_alignments(model_, decoding.context().tape, sources, options, here, hypotheses);
    for (size_t s = 0; s < batch.size(); ++s)
      results[static_cast<size_t>(batch[s])] = std::move(hypotheses[s]);
    sentences_done += static_cast<int64_t>(batch.size());
    if (options.progress && thread == 0) options.progress(sentences_done);
  };

  workers_.resize(std::max(workers_.size(), static_cast<size_t>(threads)));
  const auto count = static_cast<int64_t>(batches.size());
  if (threads > 1 && count >= threads) {
    parallel_for(count, translate_batch);
    if (options.progress) options.progress(sentences_done);  // the last batch may be another thread's
  } else {
    for (int64_t i = 0; i < count; ++i) translate_batch(i, 0);
  }
  return results;
}

std::vector<std::vector<Hypothesis>> translate(const LanguageModel& model,
                                               std::span<const std::vector<int32_t>> sources,
                                               const TranslateOptions& options,
                                               std::span<const std::vector<int32_t>> prefixes) {
  return Translator(model).translate(sources, options, prefixes);
}

}  // namespace mh
