// CircuitTexts: pairs of a clean and a corrupt text as a model reads them, and by how much it prefers the answer in a batch of them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "multihead/autograd/tape.h"
#include "multihead/batch/batch.h"
#include "multihead/folders/scored_model.h"
#include "multihead/heads/patching/heads_patch.h"
#include "multihead/heads/patching/patch_texts.h"
#include "multihead/nn/context.h"
#include "multihead/nn/list_sites.h"
#include "multihead/tensor/tensor.h"

namespace mh {

struct CircuitPair {
  PatchTexts texts;
  Tensor vectors = {};  // of a sentence model: those of answer and wrong, [2, dimension]

  /// Rows that it has in a pass.
  int64_t tokens() const { return std::ssize(texts.clean.ids) + std::ssize(texts.target.ids); }
};

/// The sites that a caller gives, e.g. those that mute heads, and then one's own, in a pass over several texts, each of which is text 0 of a
/// list of one.
class CallersSites {
 public:
  /// caller: may be null.
  CallersSites(Sites* caller, Sites& own, size_t texts)
      : zeros_(texts), listed_(caller, {.texts = zeros_, .count = 1}), both_(listed_.sites(), own) {}
  CallersSites(const CallersSites&) = delete;
  CallersSites& operator=(const CallersSites&) = delete;
  Sites* sites() { return &both_; }

 private:
  std::vector<int64_t> zeros_;
  ListSites listed_;
  SitesInTurn both_;
};

/// Calls use(begin, end) for parts of a list of so many, each of at most so many tokens, or one.
template <class TokensOf, class Use>
void in_batches(size_t count, int64_t most_tokens, const TokensOf& tokens_of, const Use& use) {
  for (size_t begin = 0; begin < count;) {
    int64_t tokens = tokens_of(begin);
    size_t end = begin + 1;
    while (end < count && tokens + tokens_of(end) <= most_tokens) tokens += tokens_of(end++);
    use(begin, end);
    begin = end;
  }
}

class CircuitTexts {
 public:
  /// REQUIRES: model outlives this.
  explicit CircuitTexts(const ScoredModel& model) : model_(model) {}

  const Model& model() const { return *model_.folder().model; }
  PatchScore score() const;
  /// Throws UsageError when these ask for what the model does not have.
  void check(const Sites& sites) const;
  /// sites: called for the vectors of answers; may be null. Throws as read_patch_texts() does.
  CircuitPair read(const PatchQuestion& question, const TextLanguages& languages, const PatchRemark& remark,
                   Sites* sites) const;

  /// One text of a pair; several of them are a batch.
  struct Text {
    const CircuitPair* pair = nullptr;
    bool corrupt = false;
  };
  /// What a pass reads; it outlives the backward pass.
  struct Batches {
    Batch text, target;
  };
  static Batches batches(std::span<const Text> texts);
  /// score(answer) - score(wrong) of each text, [texts, 1]: of words a difference of logits, which is that of log p; of labels of logits;
  /// of sentences of cosines.
  Var scores(Context& context, std::span<const Text> texts, const Batches& batches) const;

 private:
  Var of_words(Context& context, std::span<const Text> texts, const Batches& batches) const;
  Var of_labels(Context& context, std::span<const Text> texts, const Batches& batches) const;
  Var of_vectors(Context& context, std::span<const Text> texts, const Batches& batches) const;

  const ScoredModel& model_;
};

}  // namespace mh
