// Models of each kind of score with a few lines of text, and their scores by one pass over all lines.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "multihead/folders/scored_model.h"
#include "multihead/heads/importance/score_pass.h"
#include "tests/heads/small_translator.h"
#include "tests/support/places.h"

namespace mh {

inline std::filesystem::path golden_of_importance(const char* name) {
  return std::filesystem::path(goldens_folder()) / name;
}

inline HeadsText lines_of_importance(bool targets) {
  HeadsText text{.sources = {"two dogs run in the park", "a cat sees the small dogs", "the end", "",
                             "two small cats and two dogs see a park", "the cat runs and runs"}};
  if (targets)
    text.targets = {"two cats run", "a park",          "the dog sees the cat and the small dogs", "",
                    "see",          "dogs run and run"};
  return text;
}

/// A model of each kind of score.
struct ScoredFamily {
  std::string name;
  ScoredModel model;
  ScoredTexts texts;
};

inline std::vector<ScoredFamily> scored_families() {
  std::vector<ScoredFamily> all;
  const auto add = [&](const char* name, ScoredModel model, bool targets = false) {
    const HeadsText text = lines_of_importance(targets);
    TextCorpus corpus(text);
    ScoredTexts texts = read_scored_texts(model.folder(), corpus, {});
    all.push_back({name, std::move(model), std::move(texts)});
  };
  add("translator", small_translator(lines_of_importance(true).sources, 2), true);
  add("gpt2", load_scored_model(golden_of_importance("generate/gpt2")));
  add("bert", load_scored_model(golden_of_importance("fill/bert")));
  add("classifier of texts", load_scored_model(golden_of_importance("labels/bert_pairs")));
  add("classifier of tokens", load_scored_model(golden_of_importance("labels/bert_words")));
  add("decoder that classifies texts", load_scored_model(golden_of_importance("labels/llama_pairs")));
  add("decoder that classifies tokens", load_scored_model(golden_of_importance("labels/gpt2_words")));
  add("encoder-decoder that classifies", load_scored_model(golden_of_importance("labels/bart_pairs")));
  add("sentences", load_scored_model(golden_of_importance("sentences/modes")));
  return all;
}

/// The score of each text with these sites; of vectors beside `references`.
inline std::vector<double> scores_with(const ScoredFamily& family, Sites* sites,
                                       ConstMatrixView references = {}) {
  VocabularyScratch scratch;
  std::vector<int64_t> numbers;
  for (int64_t n = 0; n < std::ssize(family.texts.texts); ++n) numbers.push_back(n);
  const ScoredBatch batch = scored_batch(*family.model.folder().model, family.texts, numbers);
  Tape tape;
  ScorePass pass(tape, family.model, family.texts.kind, batch, {.sites = sites});
  return pass.scores(references, scratch);
}

inline Tensor vectors_of_family(const ScoredFamily& family) {
  if (family.texts.kind != ScoreKind::kVectors) return {};
  std::vector<int64_t> numbers;
  for (int64_t n = 0; n < std::ssize(family.texts.texts); ++n) numbers.push_back(n);
  const ScoredBatch batch = scored_batch(*family.model.folder().model, family.texts, numbers);
  Tape tape;
  return copied(ScorePass(tape, family.model, family.texts.kind, batch, {}).vectors());
}

inline std::string named(const HeadName& head) {
  return head.attention + "." + std::to_string(head.head);
}

}  // namespace mh
