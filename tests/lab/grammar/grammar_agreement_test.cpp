// Checks that the sentences are correct German. Case, gender and number are read from the finished trees,
// and every article, adjective and noun is compared with tables in this file, which are independent of
// those that made the sentences.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "lab/grammar/grammar.h"
#include "lab/grammar/lexicon.h"

namespace mh {
namespace {

using Words = std::vector<Word>;

const std::vector<GrammarSentence>& sentences() {
  static const auto all = [] {
    auto corpus =
        make_grammar_corpus({.seed = 5, .train = 4000, .valid = 0, .test = 0, .compositional = 1000});
    std::move(corpus.compositional.begin(), corpus.compositional.end(), std::back_inserter(corpus.train));
    return std::move(corpus.train);
  }();
  return all;
}

int child(const Words& words, int head, const std::string& relation) {
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i].head == head && words[i].relation == relation) return static_cast<int>(i);
  }
  return -1;
}
const Word& at(const Words& words, int i) {
  return words[static_cast<size_t>(i)];
}
/// The English word aligned to German word `target`.
const Word& source_of(const GrammarSentence& sentence, int target) {
  for (const auto& [s, t] : sentence.alignment) {
    if (t == target) return sentence.source[static_cast<size_t>(s)];
  }
  throw std::logic_error("unaligned: " + at(sentence.target, target).form);
}

/// 'n', 'a' or 'd', from relation, verb and preposition alone.
char case_of(const GrammarSentence& sentence, int i) {
  static const std::set<std::string> kDative = {"helfen",    "danken", "folgen",
                                                "vertrauen", "dienen", "antworten"};
  static const std::set<std::string> kAccusative = {"durch", "für", "ohne"};
  const Words& words = sentence.target;
  const Word& word = at(words, i);
  if (word.relation == "nsubj") return 'n';
  if (word.relation == "iobj") return 'd';
  if (word.relation == "obj") return kDative.contains(at(words, word.head).lemma) ? 'd' : 'a';
  if (word.relation == "conj") return case_of(sentence, word.head);
  const int preposition = child(words, i, "case");
  if (preposition < 0) throw std::logic_error("no case for " + word.form);
  const std::string form = at(words, preposition).form, english = source_of(sentence, preposition).form;
  return kAccusative.contains(form) || english == "into" || english == "onto" ? 'a' : 'd';
}

const grammar::Noun& noun_of(const std::string& german) {
  for (const auto& noun : grammar::lexicon().nouns) {
    if (noun.german == german) return noun;
  }
  throw std::logic_error("no noun " + german);
}
/// 'm', 'f', 'n' or 'p'.
char column_of(const GrammarSentence& sentence, int i) {
  const auto& noun = noun_of(at(sentence.target, i).lemma);
  if (source_of(sentence, i).form == noun.english_plural) return 'p';
  return "mfn"[static_cast<int>(noun.gender)];
}

/// A table by case (nad) and column (mfnp), as grammar books print them.
std::string look_up(const char* const (&table)[3][4], char grammatical_case, char column) {
  return table[std::string("nad").find(grammatical_case)][std::string("mfnp").find(column)];
}
const char* const kDer[3][4] = {
    {"der", "die", "das", "die"}, {"den", "die", "das", "die"}, {"dem", "der", "dem", "den"}};
const char* const kDieser[3][4] = {{"dieser", "diese", "dieses", "diese"},
                                   {"diesen", "diese", "dieses", "diese"},
                                   {"diesem", "dieser", "diesem", "diesen"}};
const char* const kMein[3][4] = {{"mein", "meine", "mein", "meine"},
                                 {"meinen", "meine", "mein", "meine"},
                                 {"meinem", "meiner", "meinem", "meinen"}};
const char* const kAfterDer[3][4] = {{"alte", "alte", "alte", "alten"},
                                     {"alten", "alte", "alte", "alten"},
                                     {"alten", "alten", "alten", "alten"}};
const char* const kAfterMein[3][4] = {{"alter", "alte", "altes", "alten"},
                                      {"alten", "alte", "altes", "alten"},
                                      {"alten", "alten", "alten", "alten"}};
const char* const kAlone[3][4] = {{"alter", "alte", "altes", "alte"},
                                  {"alten", "alte", "altes", "alte"},
                                  {"altem", "alter", "altem", "alten"}};
const char* const kRelative[3][4] = {
    {"der", "die", "das", "die"}, {"den", "die", "das", "die"}, {"dem", "der", "dem", "denen"}};

TEST(GrammarAgreement, ArticlesAdjectivesAndNounsAgree) {
  std::map<std::string, int> seen;
  for (const auto& sentence : sentences()) {
    const Words& words = sentence.target;
    for (int i = 0; i < static_cast<int>(words.size()); ++i) {
      if (at(words, i).upos != "NOUN") continue;
      const char grammatical_case = case_of(sentence, i), column = column_of(sentence, i);
      const std::string where = text_of(words) + ": " + at(words, i).form;
      ++seen[std::string{grammatical_case, column}];

      int determiner = child(words, i, "det");
      if (determiner < 0) determiner = child(words, i, "det:poss");
      const std::string lemma = determiner < 0 ? "" : at(words, determiner).lemma;
      const bool like_der = lemma == "der" || lemma == "dies" || lemma == "jed";
      if (determiner >= 0) {
        const std::string form = at(words, determiner).form;
        const bool dies = lemma == "dies" || lemma == "jed";
        std::string expected = lemma == "der" ? look_up(kDer, grammatical_case, column)
                               : dies         ? lemma + look_up(kDieser, grammatical_case, column).substr(4)
                                              : lemma + look_up(kMein, grammatical_case, column).substr(4);
        EXPECT_EQ(form, expected) << where;
      }
      for (const Word& word : words) {
        if (word.head != i || word.relation != "amod") continue;
        const auto& table = lemma.empty() ? kAlone : like_der ? kAfterDer : kAfterMein;
        std::string stem = word.lemma;
        if (stem.back() == 'e') stem.pop_back();
        EXPECT_EQ(word.form, stem + look_up(table, grammatical_case, column).substr(3)) << where;
      }
      const auto& noun = noun_of(at(words, i).lemma);
      std::string form(column == 'p' ? noun.german_plural : noun.german);
      if (column == 'p' && grammatical_case == 'd' && form.back() != 'n' && form.back() != 's') form += 'n';
      EXPECT_EQ(at(words, i).form, form) << where;
    }
  }
  EXPECT_EQ(seen.size(), 12u);  // every case with every gender and the plural
  for (const auto& [what, count] : seen) EXPECT_GT(count, 100) << what;
}

TEST(GrammarAgreement, RelativePronounsAgreeWithTheirNoun) {
  int seen = 0;
  for (const auto& sentence : sentences()) {
    const Words& words = sentence.target;
    for (int i = 0; i < static_cast<int>(words.size()); ++i) {
      if (at(words, i).upos != "PRON" || at(words, i).lemma != "der") continue;
      const int noun = at(words, at(words, i).head).head;
      ASSERT_EQ(at(words, at(words, i).head).relation, "acl:relcl");
      EXPECT_EQ(at(words, i).form, look_up(kRelative, case_of(sentence, i), column_of(sentence, noun)))
          << text_of(words);
      EXPECT_EQ(at(words, i - 1).form, ",");
      ++seen;
    }
  }
  EXPECT_GT(seen, 500);
}

TEST(GrammarAgreement, VerbsAgreeWithTheirSubject) {
  // Finite forms of the auxiliaries by person: ich, er, wir.
  const std::map<std::string, std::array<std::set<std::string>, 3>> kForms = {
      {"haben", {{{"habe"}, {"hat"}, {"haben"}}}},
      {"werden", {{{"werde"}, {"wird"}, {"werden"}}}},
      {"können", {{{"kann"}, {"kann"}, {"können"}}}},
      {"müssen", {{{"muss"}, {"muss"}, {"müssen"}}}},
      {"sein", {{{"bin", "war"}, {"ist", "war"}, {"sind", "waren"}}}}};
  int auxiliaries = 0;
  for (const auto& sentence : sentences()) {
    const Words& words = sentence.target;
    for (int i = 0; i < static_cast<int>(words.size()); ++i) {
      if (at(words, i).relation != "nsubj") continue;
      const int verb = at(words, i).head;
      int person = 1;
      const std::string& form = at(words, i).form;
      // A relative pronoun stands for its noun.
      const int who = at(words, i).lemma == "der" ? at(words, verb).head : i;
      const std::string english = source_of(sentence, who).form;
      if (form == "ich") person = 0;
      if (english == "we" || english == "they" || child(words, who, "conj") >= 0) person = 2;
      if (at(words, who).upos == "NOUN" && column_of(sentence, who) == 'p') person = 2;

      int finite = child(words, verb, "aux");
      if (finite < 0) finite = child(words, verb, "cop");
      if (finite >= 0) {
        const auto& forms = kForms.at(at(words, finite).lemma)[static_cast<size_t>(person)];
        EXPECT_TRUE(forms.contains(at(words, finite).form)) << text_of(words);
        ++auxiliaries;
      } else if (person == 2) {
        const std::string& end = at(words, verb).form;
        EXPECT_TRUE(end.ends_with("n")) << text_of(words);
      } else {
        EXPECT_FALSE(at(words, verb).form.ends_with("en")) << text_of(words);
      }
    }
  }
  EXPECT_GT(auxiliaries, 1000);
}

}  // namespace
}  // namespace mh
