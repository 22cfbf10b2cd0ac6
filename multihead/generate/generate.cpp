#include "multihead/generate/generate.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "multihead/base/error.h"
#include "multihead/base/random.h"
#include "multihead/batch/batch.h"
#include "multihead/batch/check_ids.h"
#include "multihead/batch/plan_batches.h"
#include "multihead/generate/beam_search.h"
#include "multihead/generate/logits_filter.h"
#include "multihead/generate/prompt_cache.h"
#include "multihead/io/check_option.h"
#include "multihead/models/decoding.h"
#include "multihead/nn/list_sites.h"

namespace mh {
namespace {

/// A prompt that has not ended.
struct Growing {
  size_t number;                // of the prompt
  int32_t place;                // of the prompt in its batch
  std::vector<int32_t> tokens;  // of the prompt, and what was generated
  Random random;
  int32_t most_new_tokens;
  GenerationEnd last;  // the reason when there are that many
};

/// Chooses the next token of each row.
class Chooser {
 public:
  Chooser(Decoding& decoding, const GenerateOptions& options)
      : decoding_(decoding),
        greedy_(options.next_token == NextToken::kGreedy),
        suppressed_(options.filters.suppressed),
        filters_(logits_filters(options.filters)),
        // The best candidates are found without storing logits.
        simple_(greedy_ && options.filters.repetition_penalty == 1 &&
                options.filters.no_repeat_ngram.value_or(0) == 0) {
    std::sort(suppressed_.begin(), suppressed_.end());
    suppressed_.erase(std::unique(suppressed_.begin(), suppressed_.end()), suppressed_.end());
  }

  /// The token that follows each row of the last step or prompt, and its log-probability without filters.
  std::span<const Candidate> choose(std::span<Growing> rows) {
    chosen_.resize(rows.size());
    if (simple_) {
      decoding_.next_words().best({.candidates = 1, .suppressed = suppressed_}, chosen_, decoding_.scratch());
      return chosen_;
    }
    const ConstMatrixView logits = decoding_.next_words().logits().value();
    for (size_t i = 0; i < rows.size(); ++i) {
      const std::span<const float> row(logits.row(static_cast<int64_t>(i)), static_cast<size_t>(logits.cols));
      filtered_.assign(row.begin(), row.end());
      for (const LogitsFilter& filter : filters_) filter(rows[i].tokens, filtered_);
      const int32_t token = greedy_ ? most_probable(filtered_) : draw(filtered_, rows[i].random.uniform());
      chosen_[i] = {token, log_probability(row, token)};
    }
    return chosen_;
  }

 private:
  Decoding& decoding_;
  const bool greedy_;
  std::vector<int32_t> suppressed_;
  std::vector<LogitsFilter> filters_;
  const bool simple_;
  std::vector<Candidate> chosen_;
  std::vector<float> filtered_;  // the logits of a row [V]
};

SearchOptions search_options(const GenerateOptions& options) {
  return {.beam_size = options.beam_size,
          .length_penalty = options.length_penalty,
          .early_stopping = options.early_stopping,
          .max_length = options.max_new_tokens,
          .no_repeat_ngram = options.filters.no_repeat_ngram,
          .end_tokens = options.end_tokens,
          .suppressed = options.filters.suppressed};
}

class Generation {
 public:
  Generation(const LanguageModel& model, std::span<const std::vector<int32_t>> prompts,
             const GenerateOptions& options)
      : facts_(model.facts()),
        prompts_(prompts),
        options_(options),
        listed_(options.sites),
        decoding_(model, {.tape = tape_, .sites = listed_.sites()}, options.cache),
        chooser_(decoding_, options),
        results_(prompts.size()) {
    ends_ = options.end_tokens;
    if (facts_.eos_id >= 0) ends_.push_back(facts_.eos_id);
  }

  std::vector<Generated> run() {
    const int32_t rows = options_.next_token == NextToken::kBeam ? options_.beam_size : 1;
    std::vector<ExampleSize> sizes;
    for (const auto& prompt : prompts_) {
      const auto length = static_cast<int64_t>(prompt.size());
      sizes.push_back({.tokens = length + int64_t{rows} * most_new_tokens(length)});
    }
    const BatchOptions plan{.max_tokens = options_.max_batch_tokens, .order = BatchOptions::Order::kAsGiven};
    for (const auto& batch : plan_batches(sizes, plan)) {
      listed_.begin({.texts = batch, .count = std::ssize(prompts_)});
      options_.next_token == NextToken::kBeam ? search(batch) : choose(batch);
    }
    return std::move(results_);
  }

 private:
  int32_t most_new_tokens(int64_t prompt) const {
    return static_cast<int32_t>(std::min<int64_t>(options_.max_new_tokens, facts_.max_positions - prompt));
  }
  GenerationEnd end_at(int32_t new_tokens) const {
    return new_tokens == options_.max_new_tokens ? GenerationEnd::kMaxNewTokens
                                                 : GenerationEnd::kMaxPositions;
  }
  Batch read(std::span<const int64_t> numbers) const {
    Batch batch;
    for (const int64_t n : numbers) batch.add(prompts_[static_cast<size_t>(n)], n);
    return batch;
  }

  // Sampling and greedy search.
  void choose(std::span<const int64_t> numbers) {
    std::vector<Growing> growing;
    for (const int64_t n : numbers) {
      const auto& prompt = prompts_[static_cast<size_t>(n)];
      const int32_t most = most_new_tokens(static_cast<int64_t>(prompt.size()));
      growing.push_back({.number = static_cast<size_t>(n),
                         .place = static_cast<int32_t>(growing.size()),
                         .tokens = prompt,
                         .random = Random(options_.seed, options_.first_number + static_cast<uint64_t>(n)),
                         .most_new_tokens = most,
                         .last = end_at(most)});
    }
    std::vector<int32_t> tokens, parents, sources;
    if (options_.prompt_cache) {
      read_on(growing[0].tokens);
    } else {
      decoding_.read(read(numbers).view());
    }
    while (true) {
      const std::span<const Candidate> chosen = chooser_.choose(growing);
      tokens.clear();
      parents.clear();
      for (size_t i = 0; i < growing.size(); ++i) {
        if (!goes_on(growing[i], chosen[i])) continue;
        if (parents.size() < i) growing[parents.size()] = std::move(growing[i]);
        parents.push_back(static_cast<int32_t>(i));
        tokens.push_back(chosen[i].token);
      }
      growing.erase(growing.begin() + static_cast<std::ptrdiff_t>(parents.size()), growing.end());
      if (growing.empty()) break;
      sources.clear();
      for (const Growing& row : growing) sources.push_back(row.place);
      decoding_.step(tokens, parents, sources);
    }
    if (options_.prompt_cache) keep();
  }

  // Reads what is new of the only prompt. Until keep() the cache is empty, in case something is thrown.
  void read_on(const std::vector<int32_t>& prompt) {
    const std::vector<int32_t> before = std::exchange(options_.prompt_cache->tokens, {});
    // One token is read in any case: the next one follows from its state.
    const auto known = std::mismatch(prompt.begin(), prompt.end() - 1, before.begin(), before.end()).first;
    Batch fresh;
    if (known == prompt.begin() || options_.prompt_cache->keys_and_values.type() != options_.cache) {
      fresh.add(prompt, 0);
      decoding_.read(fresh.view());
      return;
    }
    fresh.add(std::span(prompt).subspan(static_cast<size_t>(known - prompt.begin())), 0);
    decoding_.cache() = std::exchange(options_.prompt_cache->keys_and_values, StackCache());
    decoding_.cache().cut(static_cast<int32_t>(known - prompt.begin()));
    decoding_.read_on(fresh.view());
  }
  // The last token that was chosen may not have been read.
  void keep() {
    PromptCache& cache = *options_.prompt_cache;
    cache.keys_and_values = std::exchange(decoding_.cache(), StackCache(options_.cache));
    cache.tokens = prompts_[0];
    cache.tokens.insert(cache.tokens.end(), results_[0].tokens.begin(), results_[0].tokens.end());
    cache.tokens.resize(static_cast<size_t>(cache.keys_and_values.length(0)));
  }

  // Adds a token to its prompt's result.
  bool goes_on(Growing& row, const Candidate& chosen) {
    Generated& result = results_[row.number];
    result.log_probabilities.push_back(chosen.log_probability);
    result.log_probability += static_cast<double>(chosen.log_probability);
    if (std::find(ends_.begin(), ends_.end(), chosen.token) != ends_.end()) {
      result.end = GenerationEnd::kEndToken;
      return false;
    }
    row.tokens.push_back(chosen.token);
    result.tokens.push_back(chosen.token);
    if (options_.goes_on && !options_.goes_on(row.number, chosen.token)) {
      result.end = GenerationEnd::kStopped;
      return false;
    }
    result.end = row.last;
    return std::ssize(result.tokens) < row.most_new_tokens;
  }

  void search(std::span<const int64_t> numbers) {
    StopRule stops;
    if (options_.stops) {
      stops = [&](int32_t s, std::span<const int32_t> tokens) {
        return options_.stops(static_cast<size_t>(numbers[static_cast<size_t>(s)]), tokens);
      };
    }
    auto found = beam_search(decoding_, read(numbers).view(), search_options(options_), {}, stops);
    for (size_t i = 0; i < numbers.size(); ++i) {
      Hypothesis& best = found[i].at(0);
      Generated& result = results_[static_cast<size_t>(numbers[i])];
      result.end = best.ended     ? GenerationEnd::kEndToken
                   : best.stopped ? GenerationEnd::kStopped
                                  : end_at(static_cast<int32_t>(best.tokens.size()));
      result.log_probability = best.log_probability;
      result.log_probabilities = std::move(best.log_probabilities);
      result.tokens = std::move(best.tokens);
    }
  }

  const ModelFacts facts_;
  std::span<const std::vector<int32_t>> prompts_;
  const GenerateOptions& options_;
  std::vector<int32_t> ends_;
  Tape tape_;
  ListSites listed_;
  Decoding decoding_;
  Chooser chooser_;
  std::vector<Generated> results_;
};

}  // namespace

void check_generate(const GenerateOptions& options) {
  check_settings(options);
  const LogitsFilterOptions& filters = options.filters;
  const bool shapes_draws =
      filters.temperature != 1 || filters.top_k != 0 || filters.top_p != 1 || filters.min_p != 0;
  if (options.next_token != NextToken::kSample && shapes_draws) {
    throw UsageError(
        "`temperature`, `top_k`, `top_p` and `min_p` are for sampling; a search takes the most probable "
        "tokens");
  }
  if (options.next_token == NextToken::kBeam && options.prompt_cache)
    throw UsageError(
        "`prompt_cache` is for sampling and greedy search; a beam search reads its prompt again");
  if (options.next_token != NextToken::kBeam) {
    if (options.stops)
      throw UsageError("`stops` is for a beam search; sampling and greedy search have `goes_on`");
    return;
  }
  check_search(search_options(options));
  if (filters.repetition_penalty != 1)
    throw UsageError("`repetition_penalty` is for sampling and greedy search; a beam search has none");
  if (options.goes_on)
    throw UsageError(
        "a beam search knows its tokens at its end; use `stops`, which it asks about every hypothesis");
}

std::vector<Generated> generate(const LanguageModel& model, std::span<const std::vector<int32_t>> prompts,
                                const GenerateOptions& options) {
  check_generate(options);
  const ModelFacts facts = model.facts();
  facts.require_causal();
  if (options.prompt_cache && prompts.size() != 1)
    throw UsageError(fmt::format("`prompt_cache` is for one prompt, got {}", prompts.size()));
  if (options.sites) model.check(*options.sites);
  for (const auto* list : {&options.filters.suppressed, &options.end_tokens})
    check_ids({list, 1}, {.what = "suppressed and end tokens", .vocabulary = facts.vocabulary});
  check_ids(prompts, {.what = "prompt",
                      .longest = facts.max_positions - 1,  // one for a new token
                      .vocabulary = facts.vocabulary,
                      .may_be_empty = false});
  return Generation(model, prompts, options).run();
}

}  // namespace mh
