// 003.4: which head reads the previous word, and which finds the word that another depends on. Each is
// compared with a rule that always looks at the same distance, the best fixed offset.
#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

#include "lab/demo/grammar_heads.h"
#include "lab/studies/statistics.h"
#include "lab/studies/unique_heads/claims.h"
#include "lab/studies/unique_heads/relations_tables.h"

namespace mh::unique_heads {
namespace {

/// The clauses on what single heads do, in models that `models` names.
void predict_heads(std::vector<Prediction>& predictions, const Findings& findings, const std::string& models,
                   bool of_original) {
  const auto says = of_original ? OriginalSays::kSame : OriginalSays::kNothing;
  predictions.push_back(
      {.statement = fmt::format("{} one head of the encoder reads the previous word at more than 90 % of the "
                                "words. Voita et al. (2019) call a head positional from 90 % on.",
                                models),
       .quantity = "words at which the chosen head reads the previous word",
       .by_seed = accuracies(findings, kPreviousWord),
       .limit = Limit::above(90),
       .digits = 1,
       .unit = " %"});
  const std::pair<const char*, const char*> asked[] = {{"det", "an article and its noun"},
                                                       {"obj", "from a verb to its direct object"},
                                                       {"nsubj", "a subject and its verb"}};
  for (const auto& [relation, words] : asked) {
    predictions.push_back(
        {.statement =
             fmt::format("{} one head finds the related word of {} ({}) more often than the best fixed "
                         "offset does.",
                         models, relation, words),
         .quantity =
             fmt::format("accuracy of the chosen head for {} minus that of the chosen offset", relation),
         .by_seed = gains(findings, relation),
         .limit = Limit::above(0),
         .original = std::string_view(relation) == "nsubj" ? OriginalSays::kNothing : says,
         .digits = 1,
         .unit = " points"});
  }
}

Prediction no_single_head(const Findings& findings) {
  return {
      .statement =
          "In models whose embeddings start small no single head does well at many relations: the head that "
          "is "
          "best over all relations together is right less often than the best fixed offsets, one for each "
          "relation.",
      .quantity = "accuracy of the best single head over all relations minus that of the offsets",
      .by_seed =
          by_seed(findings, [](const auto& of) { return of.totals.single.score() - of.totals.offsets; }),
      .limit = Limit::below(0),
      .original = OriginalSays::kSame,
      .digits = 1,
      .unit = " points"};
}

}  // namespace

Claim relations(ArmRunner& runner, const Arm& canonical, const Arm& small_embeddings) {
  Claim claim{
      .id = "003.4",
      .statement =
          "Some heads of the encoder do recognisable things: one reads the previous word, others find the "
          "word that "
          "is related by det, obj or nsubj more often than the best fixed offset does; but no single head "
          "does so for "
          "all relations.",
      .remark =
          "The models whose embeddings start small are also 1.5 times as wide as the canonical ones and "
          "trained three "
          "times as long, so a difference between the two has no single cause. History: this recipe was "
          "changed several "
          "times (embeddings' scale 0.3, 1.5 times the width, three times the updates, a longer warmup, "
          "another rule of "
          "choice) until an earlier version of this claim, which asked for the previous word at half of the "
          "words, "
          "passed on the same seeds and test sentences. That result was no confirmation, so this one uses "
          "new seeds and "
          "new sentences, with everything fixed before they were looked at. At the standard size the models "
          "of these seeds were trained three times, with sums that round differently. (g) was undecided "
          "(39.3 ± 27.1 points) and then passed twice (49.1 ± 8.6, 46.1 ± 14.6); (h) failed twice (the first "
          "time at -16.7 ± 6.8) and was then undecided (-12.6 ± 13.5). Five seeds settle neither.",
      .original_words =
          "\"Attends to next word; attends from verbs to their direct objects.\" \"While no single head "
          "performs "
          "well at many relations, we find that particular heads correspond remarkably well to particular "
          "relations. "
          "For example, we find heads that find direct objects of verbs, determiners of nouns, ...\" (Clark "
          "et al. "
          "2019).",
      .original_remark =
          "The answer gives the first two as examples, and warns that heads need not be so easy to read. The "
          "recipe "
          "was made for heads that read the previous word, so nothing was predicted for the next one."};
  if (runner.test_sentences().empty()) {
    // One for each clause that an answer may ask for.
    for (const char* words : {"previous word", "noun of an article", "direct object of a verb"}) {
      claim.clauses.push_back(measured_only(
          fmt::format("Whether a head finds the {}: the text of this size has no trees.", words),
          "0 sentences with trees; the quick and standard sizes have them"));
    }
    return claim;
  }
  const FreshSentences sentences = fresh_sentences(runner);
  const Findings small = find_heads(runner, small_embeddings, sentences),
                 usual = find_heads(runner, canonical, sentences);
  std::vector<Prediction> predictions;
  predict_heads(predictions, small, "In models whose embeddings start small", true);
  predictions.push_back(no_single_head(small));
  // "In many popular architectures": one kind of model with such heads bears that out, another does not refute it.
  predict_heads(predictions, usual, "In canonical models, whose embeddings start at their usual size,",
                false);
  add_predictions(claim, predictions);
  claim.clauses.push_back(measured_only(
      "The best head for each relation, and the best head for the next word, in models whose embeddings "
      "start small.",
      fmt::format(
          "from a word to its head, all relations together: each relation's best head is right for {} % of "
          "the words, the best single head for {} %, the offsets for {} %; the head chosen for the next word "
          "reads it at {} % of the words; the previous word has the largest weight of the head chosen for it "
          "at {} % of all tokens, where the token itself, punctuation and the end token are counted, as by "
          "Voita et al. (2019); of {} relations and directions (a table below) {} have a chosen head that is "
          "right less often than the offset",
          mean_text(small, [](const auto& of) { return of.totals.each; }),
          mean_text(small, [](const auto& of) { return of.totals.single.score(); }),
          percent(small[0].totals.offsets),
          mean_text(small, [](const auto& of) { return of.heads.at(kNextWord).score(); }),
          mean_text(small, [](const auto& of) { return of.previous_of_all; }), small[0].relations.size(),
          count_below_offset(small))));
  if (runner.size() == StudySize::kQuick) {
    claim.clauses.push_back(
        measured_only("In the small language of the quick size a fixed offset always finds a subject's verb, "
                      "so no head can be "
                      "above it. The standard size asks this of richer sentences.",
                      fmt::format("the offset for nsubj is right for {} % of the words",
                                  percent(small[0].heads.at("nsubj").baseline()))));
  }
  claim.plots.push_back(points_plot(small, usual));
  claim.tables.push_back(sentences_table(runner, small_embeddings, small[0], sentences.test));
  claim.tables.push_back(heads_table(small_embeddings.name, small));
  claim.tables.push_back(heads_table(canonical.name, usual));
  claim.tables.push_back(relations_table(small_embeddings.name, small));
  claim.tables.push_back(totals_table(small_embeddings, small, canonical, usual, sentences));
  claim.tables.push_back(models_table(small, usual));
  return claim;
}

}  // namespace mh::unique_heads
