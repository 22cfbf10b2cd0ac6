// 003.4: which head reads the previous word, and which finds the word that another depends on. Each is
// compared with a rule that always looks at the same distance, the best fixed offset.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "lab/demo/grammar_heads.h"
#include "lab/studies/claim_words.h"
#include "lab/studies/statistics.h"
#include "lab/studies/unique_heads/claims.h"
#include "lab/studies/unique_heads/relations_found.h"
#include "multihead/base/terminal_text.h"
#include "multihead/heads/sites/words.h"

namespace mh::unique_heads {
namespace {

// The clauses of the claim: those of texts with trees, one more of the quick size, and those of a text without
// trees, one for each clause that an answer may ask for.
constexpr int kOfTrees = 10, kOfQuick = 1;

constexpr const char* kShown[] = {kPreviousWord, kNextWord, "det", "obj", "nsubj"};

using Share = std::function<double(const SeedFindings&)>;
/// In per cent, or in points.
std::vector<double> by_seed(const Findings& findings, const Share& share) {
  std::vector<double> numbers;
  for (const SeedFindings& of : findings) numbers.push_back(100 * share(of));
  return numbers;
}
/// score() or gain() of the chosen heads.
std::vector<double> by_seed(const Findings& findings, const char* relation,
                            double (RelationScore::*number)() const) {
  return by_seed(findings, [&](const SeedFindings& of) { return (of.heads.at(relation).*number)(); });
}
/// "81.2 ± 3.1", of by_seed().
std::string mean_text(const Findings& findings, const Share& share) {
  return interval_text(by_seed(findings, share), 1);
}
std::string percent(double share) {  // "81.2"
  return fmt::format("{:.1f}", 100 * share);
}

std::string head_name(const RelationScore& score, uint64_t seed) {
  return fmt::format("{} head {}, seed {}", score.attention, score.head, seed);
}

std::string question_of(const RelationScore& score) {
  if (neighbour_of(score.relation) != 0) return score.relation;
  return fmt::format("{}, {}", score.relation,
                     score.direction == Direction::kToHead ? "word to head" : "head to word");
}

std::string offset_text(const RelationScore& score) {
  return fmt::format("{} ({:+d})", percent(score.baseline()), score.offset);
}

/// Short sentences in which the head reads what it is said to read: "the cook will (keep) a [bottle] ."
std::vector<std::string> sentences_that_show(const ModelFolder& folder, const RelationScore& head,
                                             std::span<const GrammarSentence> sentences) {
  constexpr size_t kSentences = 2;
  constexpr int kWidth = 36;
  std::vector<std::string> shown;
  for (const GrammarSentence& sentence : sentences) {
    if (shown.size() == kSentences) break;
    std::vector<Word> words = neighbour_trees({sentence.source}, head.relation)[0];
    if (display_width(text_of(words)) + 4 > kWidth) continue;
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
      std::string &reader = words[static_cast<size_t>(from)].form,
                  &found = words[static_cast<size_t>(read)].form;
      reader = fmt::format("({})", reader), found = fmt::format("[{}]", found);
      shown.push_back(text_of(words));
      break;
    }
  }
  return shown;
}

/// The chosen heads of each seed.
void fill_heads(Table& table, const Findings& findings) {
  for (const char* relation : kShown) {
    for (const SeedFindings& of : findings) {
      const RelationScore& score = of.heads.at(relation);
      const bool place = neighbour_of(relation) != 0;
      table.rows.push_back({question_of(score), head_name(score, of.seed), percent(score.score()),
                            place ? "" : offset_text(score),
                            place ? "" : fmt::format("{:+.1f}", 100 * score.gain()),
                            std::to_string(score.support)});
    }
  }
}

/// Every relation, beside the figures of papers: accuracy / that of the best fixed offset. Clark et al. 2019, table 1
/// (BERT-base, Stanford Dependencies: dobj, pobj, poss); Voita et al. 2019, table 1 (translators, WMT).
void fill_all(Table& table, const Findings& findings) {
  const auto published = std::exchange(table.rows, {});  // the relation, Clark et al., Voita et al.
  for (size_t i = 0; i < findings[0].relations.size(); ++i) {
    const RelationScore& first = findings[0].relations[i];
    const auto mean = [&](double (RelationScore::*number)() const) {
      return mean_text(findings, [&](const SeedFindings& of) { return (of.relations[i].*number)(); });
    };
    auto& row = table.rows.emplace_back(
        std::vector{question_of(first), mean(&RelationScore::score), offset_text(first),
                    mean(&RelationScore::gain), std::to_string(first.support), std::string(), std::string()});
    for (const auto& of_papers : published) {
      if (of_papers[0] == row[0]) std::copy_n(of_papers.begin() + 1, 2, row.end() - 2);
    }
  }
}

/// Fills the plot and all tables but the first.
void fill_relations(Claim& claim, const Findings& small, const Findings& usual) {
  fill_all(claim.tables[3], small);
  for (size_t i = 0; i < 2; ++i) {
    const Findings& findings = i == 0 ? small : usual;
    fill_heads(claim.tables[1 + i], findings);
    auto& row = claim.tables[4].rows[i];  // all relations together
    row.insert(row.end(), {mean_text(findings, [](const auto& of) { return of.totals.single.score(); }),
                           mean_text(findings, [](const auto& of) { return of.totals.each; }),
                           percent(findings[0].totals.offsets), percent(findings[0].totals.right_branching)});
  }
  for (size_t i = 0; i < small.size(); ++i) {
    claim.tables[5].rows.push_back({std::to_string(small[i].seed), fmt::format("{:.3f}", small[i].loss),
                                    percent(small[i].exact), fmt::format("{:.3f}", usual[i].loss),
                                    percent(usual[i].exact)});
  }
  for (const char* relation : {"det", "obj", "nsubj", kPreviousWord}) {
    const auto points = relation == kPreviousWord ? &RelationScore::score : &RelationScore::gain;
    for (const auto& [models, of] : {std::pair("small start", &small), std::pair("canonical", &usual)}) {
      claim.plots[0].series.push_back(
          {.name = fmt::format("{}, {}", relation, models), .y = by_seed(*of, relation, points)});
    }
  }
}

/// Fills a table with sentences in which the chosen heads of one seed read what they are said to read.
void fill_sentences(Table& table, ArmRunner& runner, const Arm& arm, const SeedFindings& of,
                    std::span<const GrammarSentence> sentences) {
  const ModelFolder folder = folder_of(runner, arm, of.seed);
  for (const char* relation : kShown) {
    const RelationScore& score = of.heads.at(relation);
    for (const std::string& sentence : sentences_that_show(folder, score, sentences))
      table.rows.push_back({question_of(score), head_name(score, of.seed), sentence});
  }
}

}  // namespace

Claim relations(ArmRunner& runner, const Arm& canonical, const Arm& small_embeddings) {
  const bool trees = !runner.test_sentences().empty();
  const FreshSentences sentences = trees ? fresh_sentences(runner) : FreshSentences();
  Claim claim = claim_without_figures("003.4", {{"small", small_embeddings.name},
                                                {"canonical", canonical.name},
                                                {"seed", std::to_string(fresh_seeds(runner).front())},
                                                {"chosen_on", std::to_string(sentences.validation.size())},
                                                {"scored_on", std::to_string(sentences.test.size())}});
  const auto of_quick = claim.clauses.begin() + kOfTrees, of_paper = of_quick + kOfQuick;
  if (!trees) {
    claim.clauses.erase(claim.clauses.begin(), of_paper);
    claim.tables.clear(), claim.plots.clear();
    for (Clause& clause : claim.clauses)
      clause.measured = "0 sentences with trees; the quick and standard sizes have them";
    return claim;
  }
  const bool quick = runner.size() == StudySize::kQuick;
  claim.clauses.erase(quick ? of_paper : of_quick, claim.clauses.end());
  const Findings small = find_heads(runner, small_embeddings, sentences),
                 usual = find_heads(runner, canonical, sentences);
  std::vector<Prediction> predictions;
  const auto predict_heads = [&](const Findings& findings) {
    predictions.push_back(
        {by_seed(findings, kPreviousWord, &RelationScore::score), Limit::above(90), 1, " %"});
    for (const char* relation : {"det", "obj", "nsubj"})
      predictions.push_back(
          {by_seed(findings, relation, &RelationScore::gain), Limit::above(0), 1, " points"});
  };
  predict_heads(small);
  predictions.push_back(
      {by_seed(small, [](const auto& of) { return of.totals.single.score() - of.totals.offsets; }),
       Limit::below(0), 1, " points"});
  // "In many popular architectures": one kind of model with such heads bears that out, another does not refute it.
  predict_heads(usual);
  predict(claim, predictions);
  measure(
      claim,
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
          count_below_offset(small)));
  if (quick) {
    measure(claim, fmt::format("the offset for nsubj is right for {} % of the words",
                               percent(small[0].heads.at("nsubj").baseline())));
  }
  fill_relations(claim, small, usual);
  fill_sentences(claim.tables[0], runner, small_embeddings, small[0], sentences.test);
  return claim;
}

}  // namespace mh::unique_heads
