// Decoding: cached decoding, one token at a time for many hypotheses at once.
//
// What was read is kept as keys and values (nn/stack_cache.h); each step runs one new row for each
// hypothesis. A hypothesis is a list of row numbers in that cache, so reordering a beam rewrites numbers
// and copies no keys.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "multihead/base/aligned.h"
#include "multihead/models/language_model.h"
#include "multihead/models/next_words.h"
#include "multihead/nn/stack_cache.h"

namespace mh {

class Decoding {
 public:
  /// Throws UsageError when `context` has dropout or a tape that records. Every step clears the tape.
  /// REQUIRES: the model outlives this.
  Decoding(const LanguageModel& model, Context context, CacheType cache = CacheType::kFloat32);
  Decoding(const LanguageModel& model, Context context, const Sequences& source) : Decoding(model, context) {
    start(source);
  }

  /// Encodes the sources. There are no hypotheses yet; the first step() says how many each sentence has.
  /// May be called again for other sources; the cache's memory is kept.
  void start(const Sequences& source);

  /// Starts a causal model with a prompt for each sequence: reads all of them in one pass. Returns the states
  /// behind the last token of each, [S, d_model], valid until the next step; they are the first hypotheses,
  /// which step() continues. Throws UsageError on an empty prompt or a model that reads a source.
  ConstMatrixView read(const Sequences& prompts);
  /// The same where the cache stands, which may have been cut or put back: reads more tokens of each of its
  /// sequences.
  ConstMatrixView read_on(const Sequences& more);

  /// Feeds one token to each hypothesis (row). parents[i] is the row of the previous step that row i
  /// continues (ignored in the first step), sources[i] is the sentence that row i translates; it never
  /// falls from row to row. Returns the decoder's states [rows, d_model], valid until the next step. Throws
  /// ShapeError unless all are equally many. REQUIRES: parents[i] < rows of the previous step, translating
  /// the same sentence.
  ConstMatrixView step(std::span<const int32_t> tokens, std::span<const int32_t> parents,
                       std::span<const int32_t> sources);

  /// What may follow each row of the last step or prompt (models/next_words.h), valid until the next step. REQUIRES: there
  /// was one.
  NextWords& next_words() { return *next_words_; }
  VocabularyScratch& scratch() { return scratch_; }

  int32_t steps() const { return steps_; }
  const LanguageModel& model() const { return model_; }
  /// Who is called at sites may be changed before start().
  Context& context() { return context_; }
  /// The cache, which may be copied, cut and put back.
  StackCache& cache() { return cache_; }

 private:
  const LanguageModel& model_;
  Context context_;
  StackCache cache_;
  VocabularyScratch scratch_;
  AlignedBuffer<float> last_;            // [S, d_model]: what read() returned
  std::vector<int32_t> last_positions_;  // [S] of these
  std::optional<NextWords> next_words_;
  Ragged one_each_;
  int32_t steps_ = 0;
};

}  // namespace mh
