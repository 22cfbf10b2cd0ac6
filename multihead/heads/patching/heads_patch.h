// Activation patching: which values of a model decide between two answers. A clean text, on which the model prefers the answer, and
// a corrupt one of equally many tokens, on which it does not, are read; then the corrupt one again with the clean run's value put
// at one place:
//
//   score(run)  = log p(answer) - log p(wrong)                      natural logarithms, at the place of the answer
//   restored    = (score(patched) - score(corrupt)) / (score(clean) - score(corrupt))
//
// 1: the value alone gives the clean run's score; 0: it changes nothing; below 0: it makes the wrong answer likelier still. A sentence
// model's score is cos(v, answer) - cos(v, wrong) of the text's vector v with those of two texts. Vig et al. 2020
// ("Investigating gender bias in language models using causal mediation analysis"), Meng et al. 2022 ("Locating and editing
// factual associations in GPT", causal tracing), Wang et al. 2022 ("Interpretability in the wild"). docs/heads/patch.md
//
//   const mh::PatchReport patching = mh::heads_patch(
//       folder, {.clean = "The capital of France is", .corrupt = "The capital of Italy is", .answer = "Paris", .wrong = "Rome"});
//   for (const mh::PatchedValue* value : patching.strongest(5)) value->name, value->restored;
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "multihead/batch/batch_tokens.h"
#include "multihead/folders/model_folder.h"
#include "multihead/folders/sentence_model.h"
#include "multihead/heads/patching/patch_texts.h"
#include "multihead/text/text_languages.h"

namespace mh {

struct PatchOptions {
  PatchedPart part = PatchedPart::kHeads;
  bool by_position = false;  // a run for each position; otherwise all positions at once
  TextLanguages languages = {};
  Sites* sites =
      nullptr;  // called in all runs, e.g. SiteValues that mute heads; sequence 0 is the text of each run
  int64_t max_batch_tokens = 2048;  // of runs that go together; results depend on it only by rounding
  std::function<void(const std::string&)> remark = nullptr;           // hears of answers of several tokens
  std::function<void(int64_t done, int64_t all)> progress = nullptr;  // patched runs

  template <class V>
  void visit(V& v) {
    constexpr const char* kGroup = "Patching";
    v("what", part, kPatchedPartNames,
      {.group = kGroup,
       .help = "What is put in: outputs of heads, their attention weights, or the residual stream before a "
               "layer"});
    v("by_position", by_position, {},
      {.group = kGroup, .help = "Patch one token position at a time (the tool always does for the stream)"});
    visit_batch_tokens(v, max_batch_tokens);
    languages.visit(v);
  }
};

/// A patched run.
struct PatchedValue {
  std::string
      name;  // "decoder.3.self_attention.5", or of the stream "decoder.3.input"; the last is "decoder.11.output"
  PatchPlace place;
  AnswerScores scores;
  double restored = 0;
};

/// What the scores of answers are.
enum class PatchScore { kLogProbability, kLogit, kCosine };
inline constexpr EnumNames<PatchScore> kPatchScoreNames = {{"log_probability", PatchScore::kLogProbability},
                                                           {"logit", PatchScore::kLogit},
                                                           {"cosine", PatchScore::kCosine}};

struct PatchReport {
  PatchedPart part = PatchedPart::kHeads;
  bool by_position = false;
  PatchScore score = PatchScore::kLogProbability;
  PatchTexts texts = {};
  AnswerScores clean = {}, corrupt = {};
  std::vector<PatchedValue> values = {};  // in the order of the model; of one head or layer by position

  /// Those that change the score most, up or down.
  std::vector<const PatchedValue*> strongest(size_t count) const;
  /// The labels of the positions that a stack reads in the clean and in the corrupt run; of a target they are the same.
  const PatchText& clean_text(const std::string& stack) const;
  const PatchText& corrupt_text(const std::string& stack) const;
};

/// The smallest difference of the scores of the clean and the corrupt run that is divided by: below, rounding of float32 would be
/// a visible part of it.
inline constexpr double kLeastPatchDifference = 1e-4;

/// Of a model that predicts words: a causal model, a translator, an encoder with a head for masked words; or of a classifier, between
/// two labels of the text, or of one of its tokens, by their logits. Throws as
/// read_patch_texts() does, UsageError when clean and corrupt score less than kLeastPatchDifference apart, on an option that
/// cannot be and on sites that the model does not have; Error when a score is not finite.
PatchReport heads_patch(const ModelFolder& folder, const PatchQuestion& question,
                        const PatchOptions& options = {});
/// Of a model that makes vectors; answer and wrong are texts.
PatchReport heads_patch(const SentenceModel& model, const PatchQuestion& question,
                        const PatchOptions& options = {});

}  // namespace mh
