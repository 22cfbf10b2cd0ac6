// The built-in corpus as a whole: its parts, trees, alignments, word order and files.
#include "lab/grammar/grammar.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "lab/grammar/derivation.h"
#include "lab/grammar/lexicon.h"
#include "lab/grammar/linearise.h"
#include "multihead/base/error.h"
#include "multihead/base/file.h"
#include "multihead/base/random.h"
#include "multihead/data/conllu.h"
#include "multihead/io/lines.h"
#include "tests/support/places.h"

namespace mh {
namespace {

using Part = std::vector<GrammarSentence>;
using Words = std::vector<Word>;

constexpr GrammarOptions kOptions{.seed = 3, .train = 5000, .valid = 101, .test = 211, .compositional = 307};

const GrammarCorpus& corpus() {
  static const GrammarCorpus one = make_grammar_corpus(kOptions);
  return one;
}
std::vector<const Part*> parts() {
  return {&corpus().train, &corpus().valid, &corpus().test, &corpus().compositional};
}

TEST(Grammar, PartsHaveTheSizesAskedFor) {
  EXPECT_EQ(corpus().train.size(), 5000u);
  EXPECT_EQ(corpus().valid.size(), 101u);
  EXPECT_EQ(corpus().test.size(), 211u);
  EXPECT_EQ(corpus().compositional.size(), 307u);
  const auto novel = [](Novelty novelty) {
    return std::count_if(corpus().compositional.begin(), corpus().compositional.end(),
                         [&](const auto& sentence) { return sentence.novelty == novelty; });
  };
  EXPECT_EQ(novel(Novelty::kVerbObject), 154);
  EXPECT_EQ(novel(Novelty::kDepth), 153);
}

TEST(Grammar, HasSomeThreeHundredLemmas) {
  EXPECT_GE(grammar::lemma_count(), 300);
  EXPECT_LE(grammar::lemma_count(), 400);
}

TEST(Grammar, NoSentenceIsTwiceOnEitherSide) {
  std::unordered_set<std::string> sources, targets;
  for (const Part* part : parts()) {
    for (const auto& sentence : *part) {
      EXPECT_TRUE(sources.insert(text_of(sentence.source)).second) << text_of(sentence.source);
      EXPECT_TRUE(targets.insert(text_of(sentence.target)).second) << text_of(sentence.target);
    }
  }
}

TEST(Grammar, TheSameSeedMakesTheSameCorpusWhateverTheSizeOfTrain) {
  GrammarOptions options = kOptions;
  options.train = 50;
  const GrammarCorpus small = make_grammar_corpus(options);
  const auto same = [](const GrammarSentence& a, const GrammarSentence& b) {
    return a.source == b.source && a.target == b.target && a.alignment == b.alignment &&
           a.novelty == b.novelty;
  };
  EXPECT_TRUE(
      std::equal(small.test.begin(), small.test.end(), corpus().test.begin(), corpus().test.end(), same));
  EXPECT_TRUE(std::equal(small.compositional.begin(), small.compositional.end(),
                         corpus().compositional.begin(), corpus().compositional.end(), same));
  EXPECT_TRUE(std::equal(small.train.begin(), small.train.end(), corpus().train.begin(), same));
  options.seed = 4;
  EXPECT_NE(text_of(make_grammar_corpus(options).test[0].source), text_of(corpus().test[0].source));
}

int max_depth(const Words& words) {
  const auto opens = [](const std::string& relation) {
    return relation == "acl:relcl" || relation == "advcl" || relation == "ccomp";
  };
  int deepest = 0;
  for (const Word& word : words) {
    int depth = 0;
    for (const Word* w = &word;; w = &words[static_cast<size_t>(w->head)]) {
      depth += opens(w->relation) ? 1 : 0;
      if (w->head < 0) break;
    }
    deepest = std::max(deepest, depth);
  }
  return deepest;
}

/// Verb and object lemmas on the German side; a relative pronoun stands for its noun, and what is coordinated
/// counts.
std::set<std::pair<std::string, std::string>> pairs_of(const Words& words) {
  std::set<std::pair<std::string, std::string>> pairs;
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i].relation != "obj") continue;
    const Word& verb = words[static_cast<size_t>(words[i].head)];
    const bool relative = words[i].upos == "PRON" && words[i].lemma == "der";
    if (words[i].upos == "PRON" && !relative) continue;
    pairs.emplace(verb.lemma, relative ? words[static_cast<size_t>(verb.head)].lemma : words[i].lemma);
    for (const Word& word : words) {
      if (word.relation == "conj" && word.head == static_cast<int>(i)) pairs.emplace(verb.lemma, word.lemma);
    }
  }
  return pairs;
}

TEST(Grammar, TheCompositionalPartIsNew) {
  std::set<std::pair<std::string, std::string>> known;
  std::set<std::string> words;
  for (const Part* part : {&corpus().train, &corpus().valid, &corpus().test}) {
    for (const auto& sentence : *part) {
      known.merge(pairs_of(sentence.target));
      EXPECT_LE(max_depth(sentence.target), kOptions.depth);
      EXPECT_EQ(sentence.novelty, Novelty::kNone);
    }
  }
  for (const auto& sentence : corpus().train) {
    for (const Word& word : sentence.source) words.insert(word.lemma);
  }
  EXPECT_GT(known.size(), 1000u);
  for (const auto& sentence : corpus().compositional) {
    const auto pairs = pairs_of(sentence.target);
    const bool all_known = std::includes(known.begin(), known.end(), pairs.begin(), pairs.end());
    if (sentence.novelty == Novelty::kVerbObject) {
      EXPECT_FALSE(all_known) << text_of(sentence.source);
      EXPECT_LE(max_depth(sentence.target), kOptions.depth);
    } else {
      EXPECT_EQ(max_depth(sentence.target), kOptions.depth + 1) << text_of(sentence.source);
      EXPECT_EQ(max_depth(sentence.source), kOptions.depth + 1) << text_of(sentence.source);
    }
    for (const Word& word : sentence.source) EXPECT_TRUE(words.contains(word.lemma)) << word.lemma;
  }
}

TEST(Grammar, HeldOutPairsAreAFewOfEveryVerbAndNeverInTraining) {
  int held_out = 0, possible = 0;
  std::set<std::pair<std::string, std::string>> forbidden;
  for (const auto& verb : grammar::lexicon().verbs) {
    int left = 0, had = 0;
    for (const auto& noun : grammar::lexicon().nouns) {
      if ((verb.object & noun.kinds) == 0) continue;
      ++possible;
      ++had;
      if (grammar::is_held_out(kOptions.seed, verb, noun)) {
        ++held_out;
        forbidden.emplace(std::string(verb.prefix) + std::string(verb.german), noun.german);
      } else {
        ++left;
      }
    }
    EXPECT_TRUE(had == 0 || left * 2 > had) << verb.english;
  }
  EXPECT_GT(held_out * 32, possible);
  EXPECT_LT(held_out * 10, possible);
  for (const Part* part : {&corpus().train, &corpus().valid, &corpus().test}) {
    for (const auto& sentence : *part) {
      for (const auto& pair : pairs_of(sentence.target)) {
        EXPECT_FALSE(forbidden.contains(pair)) << text_of(sentence.target);
      }
    }
  }
}

TEST(Grammar, EverySideIsATreeWithKnownLabels) {
  const std::set<std::string> labels = {
      "root",   "nsubj", "obj",  "iobj", "det",   "det:poss",     "nmod:poss", "amod",
      "advmod", "case",  "obl",  "nmod", "mark",  "acl:relcl",    "ccomp",     "advcl",
      "aux",    "cop",   "conj", "cc",   "punct", "compound:prt", "nummod"};
  std::set<std::string> seen;
  for (const Part* part : parts()) {
    for (const auto& sentence : *part) {
      for (const Words* side : {&sentence.source, &sentence.target}) {
        ASSERT_TRUE(is_tree(*side)) << text_of(*side);
        EXPECT_LE(side->size(), static_cast<size_t>(kOptions.max_words));
        EXPECT_EQ(side->back().form, ".");
        for (const Word& word : *side) {
          seen.insert(word.relation);
          EXPECT_EQ(word.relation == "root", word.head < 0);
          EXPECT_FALSE(word.form.empty() || word.lemma.empty() || word.upos.empty());
          EXPECT_EQ(word.form.find(' '), std::string::npos);
        }
      }
    }
  }
  EXPECT_EQ(seen, labels);
}

TEST(Grammar, AlignmentsAreSortedInRangeAndCoverTheWords) {
  size_t words = 0, aligned = 0;
  for (const Part* part : parts()) {
    for (const auto& sentence : *part) {
      EXPECT_NO_THROW(
          check_alignment(sentence.alignment, sentence.source.size(), sentence.target.size(), "s", 1));
      EXPECT_TRUE(std::is_sorted(sentence.alignment.begin(), sentence.alignment.end()));
      std::set<int> source, target;
      for (const auto& [s, t] : sentence.alignment) {
        EXPECT_TRUE(source.insert(s).second ||
                    sentence.target[static_cast<size_t>(t)].relation == "compound:prt" ||
                    sentence.source[static_cast<size_t>(s)].upos != "NOUN");
        target.insert(t);
        const std::string& upos = sentence.source[static_cast<size_t>(s)].upos;
        if (upos == "NOUN" || upos == "ADJ" || upos == "NUM" || upos == "DET" || upos == "ADV") {
          EXPECT_EQ(sentence.target[static_cast<size_t>(t)].upos, upos);
        }
      }
      EXPECT_EQ(source.size(), sentence.source.size())
          << text_of(sentence.source);  // every English word has its own
      for (size_t t = 0; t < sentence.target.size(); ++t) {
        EXPECT_TRUE(target.contains(static_cast<int>(t)) || sentence.target[t].form == ",")
            << text_of(sentence.target);
      }
      words += sentence.target.size();
      aligned += target.size();
    }
  }
  EXPECT_GT(aligned * 10, words * 9);
}

TEST(Grammar, NoFixedOffsetExplainsHalfOfObjNsubjOrDet) {
  for (const bool german : {false, true}) {
    for (const std::string relation : {"obj", "nsubj", "det"}) {
      std::map<int, int> at_offset;
      int all = 0, best = 0;
      for (const auto& sentence : corpus().train) {
        const Words& words = german ? sentence.target : sentence.source;
        for (size_t i = 0; i < words.size(); ++i) {
          if (words[i].relation != relation) continue;
          ++all;
          best = std::max(best, ++at_offset[words[i].head - static_cast<int>(i)]);
        }
      }
      EXPECT_GT(all, 3000);
      EXPECT_LT(best * 2, all) << relation << (german ? " in German" : " in English");
    }
  }
}

TEST(Grammar, GermanVerbsStandSecondOrLast) {
  int inverted = 0, separated = 0, last = 0;
  for (const auto& sentence : corpus().train) {
    const Words& words = sentence.target;
    for (size_t i = 0; i < words.size(); ++i) {
      const Word& word = words[i];
      if (word.relation == "compound:prt") {
        ++separated;
        EXPECT_LT(word.head, static_cast<int>(i));
        const auto next = words[i + 1].form;
        EXPECT_TRUE(next == "." || next == ",") << text_of(words);  // the prefix closes its clause
      }
      if (word.relation == "mark") {
        ++last;
        // After the verb-last verb (or its auxiliary) the clause is over.
        size_t end = static_cast<size_t>(word.head);
        while (words[end + 1].upos == "AUX") ++end;
        EXPECT_TRUE(words[end + 1].form == "," || words[end + 1].form == ".") << text_of(words);
      }
      if (word.relation == "nsubj" && word.head < static_cast<int>(i)) ++inverted;
    }
  }
  EXPECT_GT(inverted, 300);
  EXPECT_GT(separated, 100);
  EXPECT_GT(last, 500);
}

TEST(Grammar, TheGermanIsAFunctionOfTheEnglish) {
  // Straight from the grammar, where short sentences come up many times, each time from another tree.
  std::unordered_map<std::string, std::string> translation;
  Random random(17);
  int again = 0;
  for (int i = 0; i < 30000; ++i) {
    const auto drawn = grammar::draw_sentence(random, 1, i % 3);
    const std::string source = text_of(grammar::english(*drawn.clause).words),
                      target = text_of(grammar::german(*drawn.clause).words);
    const auto [place, added] = translation.emplace(source, target);
    again += added ? 0 : 1;
    EXPECT_EQ(place->second, target) << source;
  }
  EXPECT_GT(again, 100);
}

TEST(Grammar, AnEnglishFormIsAtMostANounAndAVerb) {
  std::map<std::string, std::map<std::string, std::set<std::string>>> lemmas;  // form, part of speech
  for (const Part* part : parts()) {
    for (const auto& sentence : *part) {
      for (const Word& word : sentence.source) {
        if (word.upos == "PUNCT" || word.upos == "PRON") continue;  // "her" is two things by design
        lemmas[word.form][word.upos].insert(word.lemma);
      }
    }
  }
  int both = 0;
  for (const auto& [form, of] : lemmas) {
    for (const auto& [upos, lemma] : of) EXPECT_EQ(lemma.size(), 1u) << form << " " << upos;
    if (of.size() == 1) continue;
    EXPECT_TRUE(of.size() == 2 && of.contains("NOUN") && of.contains("VERB")) << form;
    ++both;
  }
  EXPECT_GT(both, 40);  // "dance" and "dances", ...
}

TEST(Grammar, WhatStandsBeforeItTellsANounFromAVerb) {
  // What the word before says of the forms that are a noun's and a verb's; each is met as both.
  std::map<std::string, std::array<int, 2>> seen;
  int told = 0, all = 0;
  std::map<std::string, std::set<std::string>> uposes;
  for (const auto& sentence : corpus().train) {
    for (const Word& word : sentence.source) uposes[word.form].insert(word.upos);
  }
  const std::set<std::string> opens = {"DET", "ADJ", "NUM", "ADP"};
  for (const auto& sentence : corpus().train) {
    for (size_t i = 1; i < sentence.source.size(); ++i) {
      const Word &word = sentence.source[i], &before = sentence.source[i - 1];
      if (uposes.at(word.form) != std::set<std::string>{"NOUN", "VERB"}) continue;
      const bool noun = word.upos == "NOUN";
      ++seen[word.lemma][noun ? 0 : 1];
      ++all;
      told += (opens.contains(before.upos) || before.relation == "nmod:poss") == noun;
    }
  }
  EXPECT_GE(seen.size(), 25u);
  for (const auto& [lemma, counts] : seen) {
    EXPECT_GT(counts[0], 0) << lemma;
    EXPECT_GT(counts[1], 5) << lemma;
  }
  EXPECT_GT(told * 10, all * 9);
  EXPECT_GT(all, 2000);
}

TEST(Grammar, VerbsOfOneEnglishNameNeverFitTheSameSentence) {
  const auto together = [](const grammar::Verb& a, const grammar::Verb& b) {
    const auto shared = [](grammar::Kinds x, grammar::Kinds y) {
      return std::any_of(
          grammar::lexicon().nouns.begin(), grammar::lexicon().nouns.end(),
          [&](const grammar::Noun& noun) { return (noun.kinds & x) != 0 && (noun.kinds & y) != 0; });
    };
    if (a.frame != b.frame) return false;
    return shared(a.subject, b.subject) && (a.object == 0 || shared(a.object, b.object));
  };
  int several = 0;
  const auto& verbs = grammar::lexicon().verbs;
  for (size_t i = 0; i < verbs.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (verbs[i].english != verbs[j].english) continue;
      ++several;
      EXPECT_FALSE(together(verbs[i], verbs[j])) << verbs[i].english << ": " << verbs[i].german;
      EXPECT_EQ(verbs[i].past, verbs[j].past);
      EXPECT_EQ(verbs[i].participle, verbs[j].participle);
      EXPECT_EQ(verbs[i].particle, verbs[j].particle);
    }
  }
  EXPECT_GT(several, 30);
}

TEST(Grammar, TheObjectChoosesTheGermanVerb) {
  // Written apart from the lexicon, as a dictionary would say it: verb, object, translation.
  const std::map<std::string, std::map<std::string, std::string>> kDictionary = {
      {"miss", {{"train", "verpassen"}, {"bus", "verpassen"}, {"friend", "vermissen"}, {"key", "vermissen"}}},
      {"ride", {{"horse", "reiten"}, {"camel", "reiten"}, {"bicycle", "fahren"}}},
      {"drive", {{"car", "fahren"}, {"truck", "fahren"}, {"cow", "treiben"}, {"goat", "treiben"}}},
      {"keep", {{"dog", "halten"}, {"cat", "halten"}, {"ring", "behalten"}, {"letter", "behalten"}}},
      {"save", {{"child", "retten"}, {"coin", "sparen"}, {"story", "speichern"}}},
      {"spend", {{"night", "verbringen"}, {"summer", "verbringen"}, {"coin", "ausgeben"}}},
      {"serve", {{"king", "dienen"}, {"soup", "servieren"}, {"tea", "servieren"}}},
      {"leave", {{"man", "verlassen"}, {"city", "verlassen"}, {"letter", "hinterlassen"}}},
      {"take", {{"coat", "ausziehen"}, {"shoe", "ausziehen"}, {"hat", "absetzen"}, {"crown", "absetzen"}}},
      {"pick",
       {{"guest", "abholen"},
        {"mother", "abholen"},
        {"king", "abholen"},
        {"woman", "abholen"},
        {"ring", "aufheben"},
        {"coin", "aufheben"},
        {"hat", "aufheben"},
        {"key", "aufheben"}}},
      {"wash", {{"plate", "spülen"}, {"fork", "spülen"}, {"shirt", "waschen"}, {"dog", "waschen"}}},
      {"make", {{"tea", "kochen"}, {"cake", "backen"}, {"dress", "nähen"}, {"soup", "kochen"}}},
      {"paint", {{"wall", "streichen"}, {"door", "streichen"}, {"rose", "malen"}, {"cat", "malen"}}},
      {"break", {{"cup", "zerbrechen"}, {"plate", "zerbrechen"}, {"law", "brechen"}, {"rule", "brechen"}}},
      {"follow", {{"fox", "folgen"}, {"car", "folgen"}, {"rule", "befolgen"}, {"plan", "befolgen"}}},
      {"ask", {{"king", "fragen"}, {"question", "stellen"}}},
      {"answer", {{"king", "antworten"}, {"question", "beantworten"}, {"letter", "beantworten"}}},
      {"call", {{"nurse", "anrufen"}, {"dog", "rufen"}}},
      {"raise", {{"child", "großziehen"}, {"pig", "züchten"}}},
      {"open", {{"door", "aufmachen"}, {"museum", "eröffnen"}}},
  };
  std::set<std::string> met;
  int checked = 0;
  for (const Part* part : parts()) {
    for (const auto& sentence : *part) {
      for (const auto& [s, t] : sentence.alignment) {
        const Word& object = sentence.source[static_cast<size_t>(s)];
        if (object.relation != "obj" || object.upos != "NOUN") continue;
        const auto& verb = sentence.source[static_cast<size_t>(object.head)];
        const auto entry = kDictionary.find(verb.lemma);
        if (entry == kDictionary.end() || !entry->second.contains(object.lemma)) continue;
        const Word& german_object = sentence.target[static_cast<size_t>(t)];
        ASSERT_EQ(german_object.relation, "obj");
        EXPECT_EQ(sentence.target[static_cast<size_t>(german_object.head)].lemma,
                  entry->second.at(object.lemma))
            << text_of(sentence.source);
        met.insert(verb.lemma);
        ++checked;
      }
    }
  }
  for (const auto& [verb, senses] : kDictionary) EXPECT_TRUE(met.contains(verb)) << verb;
  EXPECT_GT(checked, 100);
}

TEST(Grammar, TheSubjectChoosesBetweenEssenAndFressen) {
  const std::set<std::string> kAnimals = {"dog", "cat", "wolf", "horse", "goose", "snake", "bird", "rabbit"};
  int people = 0, animals = 0;
  for (const auto& sentence : corpus().train) {
    for (const auto& [s, t] : sentence.alignment) {
      const Word& subject = sentence.source[static_cast<size_t>(s)];
      if (subject.relation != "nsubj" || subject.head < 0) continue;
      if (sentence.source[static_cast<size_t>(subject.head)].lemma != "eat") continue;
      if (subject.upos == "PRON" && (subject.lemma == "who" || subject.lemma == "which")) continue;
      const int head = sentence.target[static_cast<size_t>(t)].head;
      const std::string& german = sentence.target[static_cast<size_t>(head)].lemma;
      if (subject.upos == "PRON") {
        EXPECT_EQ(german, "essen") << text_of(sentence.source);
        ++people;
      } else if (kAnimals.contains(subject.lemma)) {
        EXPECT_EQ(german, "fressen") << text_of(sentence.source);
        ++animals;
      }
    }
  }
  EXPECT_GT(people, 3);
  EXPECT_GT(animals, 3);
}

TEST(Grammar, AParticleStandsBehindAPronounAndBeforeANoun) {
  int pronouns = 0, nouns = 0;
  for (const auto& sentence : corpus().train) {
    const Words& words = sentence.source;
    for (size_t i = 0; i < words.size(); ++i) {
      if (words[i].relation != "compound:prt") continue;
      for (size_t j = 0; j < words.size(); ++j) {
        if (words[j].relation != "obj" || words[j].head != words[i].head) continue;
        if (words[j].upos == "NOUN") {
          EXPECT_LT(i, j) << text_of(words);
          ++nouns;
        }
        if (words[j].upos == "PRON" && words[j].lemma != "who" && words[j].lemma != "which") {
          EXPECT_EQ(j + 1, i) << text_of(words);
          ++pronouns;
        }
      }
    }
  }
  EXPECT_GT(pronouns, 4);
  EXPECT_GT(nouns, 100);
}

std::string golden_lines() {
  std::string lines;
  for (size_t i = 0; i < 40; ++i) {
    const auto& sentence = i < 30 ? corpus().test[i] : corpus().compositional[i < 35 ? i : i + 200];
    lines += text_of(sentence.source) + " ||| " + text_of(sentence.target) + " ||| " +
             format_pharaoh(sentence.alignment) + "\n";
  }
  return lines;
}

TEST(Grammar, SaysWhatWasReadOver) {
  // Sentences that a speaker of both languages has read; when the grammar changes on purpose, read the new
  // ones and write them with MULTIHEAD_UPDATE_GOLDEN=1.
  const auto path = std::filesystem::path(goldens_folder()) / "grammar" / "read_over.txt";
  if (std::getenv("MULTIHEAD_UPDATE_GOLDEN") != nullptr) {
    std::filesystem::create_directories(path.parent_path());
    write_file_atomically(path, golden_lines());
  }
  EXPECT_EQ(golden_lines(), read_file(path));
}

TEST(Grammar, WritesItsFilesAndReadsThemBack) {
  const auto folder = std::filesystem::temp_directory_path() / ("mh_grammar_" + std::to_string(getpid()));
  std::filesystem::remove_all(folder);
  write_grammar_corpus(corpus(), folder);
  write_grammar_corpus(corpus(), folder);  // in place of its like
  const auto text = read_parallel_text(folder / "test.en", folder / "test.de");
  const auto source = ConlluFileReader(folder / "test.en.conllu").next(1000),
             target = ConlluFileReader(folder / "test.de.conllu").next(1000);
  const auto alignments = read_lines(folder / "test.align");
  ASSERT_EQ(text.size(), 211u);
  ASSERT_EQ(source.size(), 211u);
  ASSERT_EQ(target.size(), 211u);
  ASSERT_EQ(alignments.size(), 211u);
  for (size_t i = 0; i < text.size(); ++i) {
    EXPECT_EQ(source[i].tree(), corpus().test[i].source);
    EXPECT_EQ(target[i].tree(), corpus().test[i].target);
    EXPECT_EQ(parse_pharaoh(alignments[i]), corpus().test[i].alignment);
    EXPECT_EQ(text.source[i], text_of(corpus().test[i].source));
    EXPECT_EQ(text.target[i], text_of(corpus().test[i].target));
  }
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 20);

  std::ofstream(folder / "thesis.txt") << "mine";
  EXPECT_THROW(write_grammar_corpus(corpus(), folder), FileError);
  EXPECT_TRUE(std::filesystem::exists(folder / "thesis.txt"));
  EXPECT_THROW(write_grammar_corpus(corpus(), folder / "thesis.txt"), FileError);
  std::filesystem::remove_all(folder);
}

TEST(Grammar, GoesOnLookingForRareSentences) {
  // Clauses two deep are one draw in thousands among sentences of at most 14 words.
  const GrammarCorpus rare =
      make_grammar_corpus({.train = 0, .valid = 0, .test = 0, .compositional = 40, .max_words = 14});
  EXPECT_EQ(rare.compositional.size(), 40u);
}

TEST(Grammar, RefusesWhatCannotBe) {
  EXPECT_THROW(make_grammar_corpus({.train = -1}), UsageError);
  EXPECT_THROW(make_grammar_corpus({.train = int64_t{1} << 40}), UsageError);
  EXPECT_THROW(make_grammar_corpus({.train = 10, .depth = 9}), UsageError);
  EXPECT_THROW(make_grammar_corpus({.train = 10, .max_words = 2}), UsageError);
  try {
    // Clauses nested two deep do not fit into five words.
    make_grammar_corpus({.train = 1, .valid = 1, .test = 1, .compositional = 4, .max_words = 5});
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("found only 0 of 2 new sentences of at most 5 words"));
  }
}

}  // namespace
}  // namespace mh
