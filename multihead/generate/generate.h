// Text from a causal model, as token ids: each prompt is read in one pass, and then one token after the
// other is chosen: the most probable one (greedy search), one at random (sampling), or those of the most
// probable continuation that a beam search finds. tasks/generate_text.h does it with text.
//
// All prompts of a batch are read at once, and so is the next token of all of them: a weight is read once
// for a step. What comes of a prompt depends on the prompt, its number and the seed, not on the batch or
// the threads.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "multihead/base/precision.h"
#include "multihead/generate/logits_filter_options.h"
#include "multihead/generate/search.h"
#include "multihead/io/config.h"
#include "multihead/models/language_model.h"
#include "multihead/nn/context.h"

namespace mh {

struct PromptCache;

/// How the next token is chosen.
enum class NextToken {
  kSample,  // drawn from softmax of the filtered logits
  kGreedy,  // the most probable one
  kBeam,    // those of the best hypothesis of a beam search (beam_search.h)
};

struct GenerateOptions {
  NextToken next_token = NextToken::kSample;
  /// Greedy search obeys `suppressed`, `repetition_penalty` and `no_repeat_ngram`, a beam search the first and the last.
  LogitsFilterOptions filters = {};
  int32_t beam_size = 4;              // of a beam search
  LengthPenalty length_penalty = {};  // of a beam search
  /// Of a beam search. Nothing: as the model's folder says (tasks/generate_text.h), else kTrue.
  std::optional<EarlyStopping> early_stopping = std::nullopt;
  /// The draw of token k of prompt n uses random numbers 2k and 2k + 1 of stream n of this seed
  /// (base/random.h).
  uint64_t seed = 1;
  uint64_t first_number = 0;  // n of the first prompt
  int32_t max_new_tokens = 256;
  std::vector<int32_t> end_tokens = {};  // besides the model's own
  /// Most tokens of a batch, prompts and new ones together: the cache has room for so many, times the beam
  /// size. One prompt may have more.
  int64_t max_batch_tokens = 8192;
  Sites* sites = nullptr;  // whose sequences are the prompts
  /// For one prompt, and not for a beam search: what was read before (prompt_cache.h), with the same model and
  /// sites. The tokens with which the prompt begins as well are not read again, unless they are kept as another `cache`.
  /// Afterwards it holds what was read now.
  PromptCache* prompt_cache = nullptr;
  CacheType cache = CacheType::kFloat32;  // docs/precision.md#the-cache
  /// Called when prompt n, counted from 0, has got another token that is no end token; false ends it there.
  /// Not for a beam search.
  std::function<bool(size_t n, int32_t token)> goes_on = nullptr;
  /// For a beam search: whether the text of prompt n ends with the last of these new tokens, though that is no
  /// end token. It is asked about every hypothesis.
  std::function<bool(size_t n, std::span<const int32_t> tokens)> stops = nullptr;

  template <class V>
  void visit(V& v) {
    constexpr const char* kGroup = kNextTokenGroup;
    v("max_new_tokens", max_new_tokens, {.low = 1},
      {.group = "Text", .help = "Most tokens that are generated"});
    v("search", next_token,
      {{"sample", NextToken::kSample}, {"greedy", NextToken::kGreedy}, {"beam", NextToken::kBeam}},
      {.group = kGroup,
       .help = "Draw each token, take the most probable one, or those of the best text of a beam search"});
    v("beam_size", beam_size, {.low = 1, .high = kLargestBeam},
      {.group = kGroup, .help = "Search for the most probable text with this many hypotheses"});
    length_penalty.visit(v, kGroup);
    visit_early_stopping(v, early_stopping, kGroup);
    filters.visit(v);
    v("seed", seed, {},
      {.group = kGroup, .help = "Seed of the draws; with the prompt's number it decides the text"});
    v("cache", cache, kCacheTypeNames,
      {.group = "Text",
       .help =
           "How keys and values of what was read are kept: bfloat16 takes half the memory and rounds them"});
    v("max_batch_tokens", max_batch_tokens, {.low = 1},
      {.group = "Text",
       .help = "Most tokens of the prompts and texts that are generated at once",
       .rare = true});
  }
};

/// Why there are no more tokens.
enum class GenerationEnd {
  kEndToken,      // an end token came
  kStopped,       // GenerateOptions::goes_on or stops said so
  kMaxNewTokens,  // there are max_new_tokens
  kMaxPositions,  // prompt and new tokens are as many as the model has positions
};

struct Generated {
  std::vector<int32_t> tokens = {};  // new ones, without the end token
  /// log p(token | everything before), natural, of the model itself, before the filters; that of an end
  /// token comes last.
  std::vector<float> log_probabilities = {};
  double log_probability = 0;  // their sum
  GenerationEnd end = GenerationEnd::kMaxNewTokens;
};

/// Throws UsageError on options that are out of range or contradict each other.
void check_generate(const GenerateOptions& options);

/// Returns what comes of each prompt, in order. Throws UsageError on invalid options, on a model
/// that translates, and on a prompt that is empty, has unknown tokens or leaves no room for another token.
std::vector<Generated> generate(const LanguageModel& model, std::span<const std::vector<int32_t>> prompts,
                                const GenerateOptions& options = {});

}  // namespace mh
