// Translator: translates any number of sentences, given as token ids. Sentences of similar length go into
// one batch, beam search (beam_search.h) translates each batch, and the results come in the order of the
// input. Tokenizer (text/tokenizer.h) turns text into ids and back.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "multihead/base/precision.h"
#include "multihead/generate/align.h"
#include "multihead/generate/search.h"
#include "multihead/io/config.h"
#include "multihead/models/language_model.h"
#include "multihead/nn/context.h"
#include "multihead/text/text_languages.h"

namespace mh {

struct TranslateOptions {
  SearchOptions search = {};
  TextLanguages languages = {};  // of translate_text(), which makes tokens of them
  /// Of translate_text(), too: a target language for each text, in place of that of `languages`; empty: all have that one.
  std::vector<std::string> targets = {};
  /// Of translate_text(), too: what it puts before each text that is not empty, such as T5's "summarize: ".
  std::optional<std::string> source_prefix = {};
  int64_t max_batch_tokens = 2048;        // most source tokens of a batch; results do not depend on it
  CacheType cache = CacheType::kFloat32;  // docs/precision.md#the-cache
  std::optional<AlignOptions> align = std::nullopt;  // fills Hypothesis::alignment
  Sites* sites = nullptr;  // applied to the alignment, too; its sequences are the sources
  /// Called by the calling thread after each of its batches, and at the end.
  std::function<void(int64_t sentences_done)> progress = nullptr;

  template <class V>
  void visit(V& v) {
    languages.visit(v);
    v("source_prefix", source_prefix, {},
      {.group = "Languages",
       .help = "Put TEXT before each text, as T5's tasks want (\"summarize: \"); info lists a model's",
       .value = "TEXT"});
    search.visit(v);
    v("cache", cache, kCacheTypeNames,
      {.group = "Search",
       .help = "How the decoder's keys and values are kept: bfloat16 takes half the memory and rounds them",
       .rare = true});
    v("max_batch_tokens", max_batch_tokens, {.low = 1},
      {.group = "Search", .help = "Most source tokens in a batch", .rare = true});
  }
};

/// Keeps its memory between calls. When there are many batches, each thread of the pool translates its own;
/// when there are few, all threads work on one batch together. Only one thread may call it at a time.
class Translator {
 public:
  /// `model` must outlive this.
  explicit Translator(const LanguageModel& model);
  ~Translator();
  Translator(const Translator&) = delete;
  Translator& operator=(const Translator&) = delete;

  /// Returns the hypotheses of each source, at most n_best, best first. A source has its end token; an
  /// empty source has no hypotheses. prefixes: empty, or the tokens with which each translation must begin.
  /// Throws UsageError on invalid options, ids or prefixes, ShapeError on a source longer than
  /// max_positions.
  std::vector<std::vector<Hypothesis>> translate(std::span<const std::vector<int32_t>> sources,
                                                 const TranslateOptions& options = {},
                                                 std::span<const std::vector<int32_t>> prefixes = {});

 private:
  struct Worker;
  Worker& worker(int number);

  const LanguageModel& model_;
  std::vector<std::unique_ptr<Worker>> workers_;
};

/// The same with a Translator for this call only.
std::vector<std::vector<Hypothesis>> translate(const LanguageModel& model,
                                               std::span<const std::vector<int32_t>> sources,
                                               const TranslateOptions& options = {},
                                               std::span<const std::vector<int32_t>> prefixes = {});

}  // namespace mh
