#include "lab/studies/unique_heads/relations_tables.h"

#include <fmt/format.h>

#include <numeric>
#include <utility>

#include "lab/demo/grammar_heads.h"
#include "lab/studies/statistics.h"
#include "multihead/base/terminal_text.h"
#include "multihead/heads/measures/words.h"

namespace mh::unique_heads {
namespace {

constexpr const char* kShown[] = {kPreviousWord, kNextWord, "det", "obj", "nsubj"};

std::string head_name(const RelationScore& score, uint64_t seed) {
  return fmt::format("{} head {}, seed {}", score.attention, score.head, seed);
}

std::string question_of(const RelationScore& score) {
  if (score.relation == kPreviousWord || score.relation == kNextWord) return score.relation;
  return fmt::format("{}, {}", score.relation,
                     score.direction == Direction::kToHead ? "word to head" : "head to word");
}

/// Figures that papers give for such heads: accuracy / that of the best fixed offset. Clark et al. 2019, table 1
/// (BERT-base, Stanford Dependencies: dobj, pobj, poss); Voita et al. 2019, table 1 (translators, WMT).
struct Published {
  const char *question, *clark, *voita;
};
constexpr Published kPublished[] = {
    {"det, word to head", "94.3 / 51.7", ""},       {"obj, word to head", "86.8 / 40.0", "73 / 41"},
    {"obj, head to word", "", "78 / 41"},           {"nsubj, word to head", "58.5 / 45.5", "52 / 35"},
    {"nsubj, head to word", "", "45 / 35"},         {"case, word to head", "76.3 / 34.6", ""},
    {"nmod:poss, word to head", "80.5 / 47.7", ""}, {"amod, word to head", "75.6 / 68.3", "82 / 72"},
    {"amod, head to word", "", "74 / 72"},          {"advmod, word to head", "48.8 / 40.2", "52 / 46"},
    {"advmod, head to word", "", "48 / 46"},        {"aux, word to head", "81.1 / 71.5", ""}};

std::vector<std::string> totals_row(const std::string& arm, const Findings& findings) {
  const auto mean = [&](auto share) { return mean_text(findings, share); };
  return {arm, mean([](const SeedFindings& of) { return of.totals.single.score(); }),
          mean([](const SeedFindings& of) { return of.totals.each; }), percent(findings[0].totals.offsets),
          percent(findings[0].totals.right_branching)};
}

/// Short sentences in which the head reads what it is said to read: "the cook will (keep) a [bottle] ."
std::vector<std::string> sentences_that_show(const ModelFolder& folder, const RelationScore& head,
                                             std::span<const GrammarSentence> sentences) {
  constexpr size_t kSentences = 2;
  constexpr int kWidth = 36;
  std::vector<std::string> shown;
  for (const GrammarSentence& sentence : sentences) {
    if (shown.size() == kSentences) break;
    std::vector<Word> words = sentence.source;
    if (display_width(text_of(words)) + 4 > kWidth) continue;
    if (head.relation == kPreviousWord) words = neighbour_trees({words}, -1, kPreviousWord)[0];
    if (head.relation == kNextWord) words = neighbour_trees({words}, 1, kNextWord)[0];
    const Observation seen = observe_text(folder, text_of(sentence.source), text_of(sentence.target));
    const ConstMatrixView rows = seen.weights({head.attention, head.head});
    // A token is a word; the last is the end token.
    const auto size = static_cast<int64_t>(words.size());
    WordOfToken word_of(words.size() + 1, -1);
    std::iota(word_of.begin(), word_of.end() - 1, 0);
    const std::vector<int> reads = most_read(merge_to_words(rows, word_of, size, word_of, size)).reads;
    for (int word = 0; word < static_cast<int>(words.size()); ++word) {
      const Word& w = words[static_cast<size_t>(word)];
      if (w.head < 0 || w.relation != head.relation) continue;
      const auto [from, read] =
          head.direction == Direction::kToHead ? std::pair(word, w.head) : std::pair(w.head, word);
      if (reads[static_cast<size_t>(from)] != read) continue;
      std::vector<Word> marked = words;
      marked[static_cast<size_t>(from)].form = "(" + marked[static_cast<size_t>(from)].form + ")";
      marked[static_cast<size_t>(read)].form = "[" + marked[static_cast<size_t>(read)].form + "]";
      shown.push_back(text_of(marked));
      break;
    }
  }
  return shown;
}

}  // namespace

std::vector<double> by_seed(const Findings& findings,
                            const std::function<double(const SeedFindings&)>& share) {
  std::vector<double> numbers;
  for (const SeedFindings& of : findings) numbers.push_back(100 * share(of));
  return numbers;
}
std::vector<double> accuracies(const Findings& findings, const char* relation) {
  return by_seed(findings, [&](const SeedFindings& of) { return of.heads.at(relation).score(); });
}
std::vector<double> gains(const Findings& findings, const char* relation) {
  return by_seed(findings, [&](const SeedFindings& of) { return of.heads.at(relation).gain(); });
}
std::string mean_text(const Findings& findings, const std::function<double(const SeedFindings&)>& share) {
  return interval_text(interval_of(by_seed(findings, share)), 1);
}
std::string percent(double share) {
  return fmt::format("{:.1f}", 100 * share);
}
int count_below_offset(const Findings& findings) {
  int below = 0;
  for (size_t i = 0; i < findings[0].relations.size(); ++i) {
    int64_t gained = 0;
    for (const SeedFindings& of : findings) gained += of.relations[i].found - of.relations[i].found_at_offset;
    below += gained < 0;
  }
  return below;
}

Table heads_table(const std::string& arm, const Findings& findings) {
  Table table{
      fmt::format("the chosen heads, {}. A head and its offset are chosen on validation sentences, and the "
                  "figures are those of test sentences. From 10 points above the offset on, Voita et al. "
                  "(2019) call a head syntactic",
                  arm),
      {"relation", "head", "right %", "offset %", "points", "words"},
      {}};
  for (const char* relation : kShown) {
    for (const SeedFindings& of : findings) {
      const RelationScore& score = of.heads.at(relation);
      const bool place = relation == kPreviousWord || relation == kNextWord;
      table.rows.push_back({question_of(score), head_name(score, of.seed), percent(score.score()),
                            place ? "" : fmt::format("{} ({:+d})", percent(score.baseline()), score.offset),
                            place ? "" : fmt::format("{:+.1f}", 100 * score.gain()),
                            std::to_string(score.support)});
    }
  }
  return table;
}

Table relations_table(const std::string& arm, const Findings& findings) {
  Table table{
      fmt::format(
          "every relation with {} words or more, {}: means over the seeds of the heads chosen on "
          "validation, beside published heads and their best fixed offsets, right % / offset %. "
          "Clark et al. (2019): BERT-base on the Wall Street Journal, where obj is dobj, case is pobj "
          "and nmod:poss is poss. Voita et al. (2019): translators trained on WMT",
          kFewestWords, arm),
      {"relation", "right %", "offset %", "points", "words", "Clark et al.", "Voita et al."},
      {}};
  for (size_t i = 0; i < findings[0].relations.size(); ++i) {
    const RelationScore& first = findings[0].relations[i];
    const std::string question = question_of(first);
    const Published* published = nullptr;
    for (const Published& one : kPublished) {
      if (question == one.question) published = &one;
    }
    table.rows.push_back({question,
                          mean_text(findings, [&](const auto& of) { return of.relations[i].score(); }),
                          fmt::format("{} ({:+d})", percent(first.baseline()), first.offset),
                          mean_text(findings, [&](const auto& of) { return of.relations[i].gain(); }),
                          std::to_string(first.support), published ? published->clark : "",
                          published ? published->voita : ""});
  }
  return table;
}

Table totals_table(const Arm& small_embeddings, const Findings& small, const Arm& canonical,
                   const Findings& usual, const FreshSentences& sentences) {
  return {
      fmt::format(
          "from a word to its head, all relations together, right %. Heads and offsets are chosen on {} "
          "sentences and scored on {} others, none of which is in the study's text. Right-branching: the "
          "head of every word is the next word. Of BERT-base, Clark et al. (2019) give the best single head "
          "and right-branching",
          sentences.validation.size(), sentences.test.size()),
      {"models", "best single head", "each relation's head", "each relation's offset", "right-branching"},
      {totals_row(small_embeddings.name, small),
       totals_row(canonical.name, usual),
       {"BERT-base (Clark et al. 2019)", "34.5", "", "", "26.3"}}};
}

Table models_table(const Findings& small, const Findings& usual) {
  Table table{
      "the models: loss a token and share of sentences translated to the letter, on the study's test text",
      {"seed", "small start: loss", "exact %", "canonical: loss", "exact %"},
      {}};
  for (size_t i = 0; i < small.size(); ++i) {
    table.rows.push_back({std::to_string(small[i].seed), fmt::format("{:.3f}", small[i].loss),
                          percent(small[i].exact), fmt::format("{:.3f}", usual[i].loss),
                          percent(usual[i].exact)});
  }
  return table;
}

Plot points_plot(const Findings& small, const Findings& usual) {
  Plot plot{.title = "How often the chosen heads are right",
            .x_label = "points above the best fixed offset; of \"previous\": % of the words",
            .y_label = "",
            .log_x = false,
            .series = {},
            .kind = PlotKind::kStrips,
            .reference = PlotReference::kZero};
  for (const char* relation : {"det", "obj", "nsubj"}) {
    plot.series.push_back({.name = fmt::format("{}, small start", relation), .y = gains(small, relation)});
    plot.series.push_back({.name = fmt::format("{}, canonical", relation), .y = gains(usual, relation)});
  }
  plot.series.push_back({.name = "previous, small start", .y = accuracies(small, kPreviousWord)});
  plot.series.push_back({.name = "previous, canonical", .y = accuracies(usual, kPreviousWord)});
  return plot;
}

Table sentences_table(ArmRunner& runner, const Arm& arm, const SeedFindings& of,
                      std::span<const GrammarSentence> sentences) {
  Table table{
      fmt::format("the first short test sentences that show it, in the model of seed {}: from the word in "
                  "( ) the head reads the one in [ ] most",
                  of.seed),
      {"relation", "head", "sentence"},
      {}};
  const ModelFolder folder = folder_of(runner, arm, of.seed);
  for (const char* relation : kShown) {
    const RelationScore& score = of.heads.at(relation);
    for (const std::string& sentence : sentences_that_show(folder, score, sentences))
      table.rows.push_back({question_of(score), head_name(score, of.seed), sentence});
  }
  return table;
}

}  // namespace mh::unique_heads
