// The words of the built-in grammar: English and German side by side, with the properties that the grammar
// needs. They are in lexicon.json, which is a part of the library. Each English word has one German translation
// in its context: no form is two nouns or two verbs, and verbs with the same English name (one row each) differ
// in frame or never take the same nouns. A form may be both a noun and a verb; the words around it tell which.
// The tables leave out words whose forms a small model would have to guess (nouns of the n-declension, "read",
// "put", adjectives that drop an inner e).
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace mh::grammar {

enum class Gender { kMasculine, kFeminine, kNeuter };
enum class Number { kSingular, kPlural };
enum class Case { kNominative, kAccusative, kDative };

/// The kinds of things that nouns name, a bit each, in the order of lexicon.json; a verb or an adjective lists the
/// kinds that it goes with.
using Kinds = uint64_t;
constexpr Kinds kPerson = 1;

struct Noun {
  std::string_view english, english_plural;
  std::string_view german, german_plural;
  Gender gender;
  Kinds kinds;
};

enum class Frame { kIntransitive, kMotion, kTransitive, kDitransitive, kClausal };

/// English: base, past, participle and a particle ("wakes up"). German: the prefix that separates (or ""),
/// then the infinitive and finite forms without it; the participle whole.
struct Verb {
  std::string_view english, past, participle, particle;
  std::string_view prefix, german, german_third, german_past, german_participle;
  Frame frame;
  Kinds subject;  // kinds of noun that do it
  Kinds object;   // kinds of noun it is done to; 0: none
  Case object_case = Case::kAccusative;
  bool perfect_with_sein = false;
  std::string_view german_first = {};  // "ich ..." where it is not the stem + e
};

/// The order of adjectives, in both languages; two of one group never describe the same noun.
enum class Group { kOpinion, kCharacter, kCondition, kSize, kAge, kColour };

struct Adjective {
  std::string_view english, german;
  Group group;
  Kinds kinds;
};

enum class Tense { kPresent, kPast, kPerfect, kFuture, kCan, kMust };
constexpr uint32_t bit(Tense tense) {
  return uint32_t{1} << static_cast<int>(tense);
}
constexpr uint32_t kAnyTense = 63;

struct Adverb {
  std::string_view english, german;
  uint32_t tenses = kAnyTense;
  bool with_copula = true;
};

struct Preposition {
  std::string_view english, german;
  Case governs;
  Kinds kinds;  // of the noun it takes
};

struct Pronoun {
  std::string_view english, english_object, english_possessive;
  std::string_view german, german_accusative, german_dative, german_possessive;
  bool first_person;
  Number number;
};

/// A subordinating conjunction, or a number word.
struct Pair {
  std::string_view english, german;
};

struct Lexicon {
  std::vector<Noun> nouns;
  std::vector<Verb> verbs;
  std::vector<Adjective> adjectives;
  std::vector<Adverb> degree_adverbs;  // "very": before an adjective
  std::vector<Adverb> middle_adverbs;  // "often": before the English verb, in the German middle field
  std::vector<Adverb> edge_adverbs;    // "today", "here": first or last in an English clause
  // No preposition is in two of these lists, so its attachment is never ambiguous.
  std::vector<Preposition> place_prepositions;  // where something happens: belongs to the verb
  std::vector<Preposition> goal_prepositions;   // where somebody goes: belongs to a verb of motion
  std::vector<Preposition> noun_prepositions;   // "with": belongs to the noun before it
  std::vector<Pronoun> pronouns;
  std::vector<Pair> subordinators, numerals;
};
const Lexicon& lexicon();

/// The number of English lemmas, content and function words together.
int lemma_count();

}  // namespace mh::grammar
