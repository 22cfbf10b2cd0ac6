// The words of the built-in grammar: English and German side by side, with what a sentence needs to know of
// them. The map from English to German is a function: no English form stands for two German lemmas. The
// tables keep out of the way of what a small model would have to guess (nouns of the n-declension, "read",
// "put", adjectives that drop an inner e), not of what German really does.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace mh::grammar {

enum class Gender { masculine, feminine, neuter };
enum class Number { singular, plural };
enum class Case { nominative, accusative, dative };

/// What a noun can be used for; a verb or an adjective names the kinds it goes with.
enum Kind : uint32_t {
  kPerson = 1,
  kAnimal = 2,
  kFood = 4,
  kDrink = 8,
  kThing = 16,
  kText = 32,
  kVehicle = 64,
  kDevice = 128,
  kOpens = 256,
  kRoom = 512,       // one can be in it
  kSurface = 1024,   // one can be on it
  kLandmark = 2048,  // one can be behind or beside it
  kAlive = kPerson | kAnimal,
  kObject = kThing | kText | kVehicle | kDevice,
  kAny = 0xffffffff,
};

struct Noun {
  std::string_view english, english_plural;
  std::string_view german, german_plural;
  Gender gender;
  uint32_t kinds;
};

enum class Frame { intransitive, motion, transitive, ditransitive, clausal };

/// English: base, past, participle and a particle ("wakes up"). German: the prefix that separates (or ""),
/// then the infinitive and finite forms without it; the participle whole.
struct Verb {
  std::string_view english, past, participle, particle;
  std::string_view prefix, german, german_third, german_past, german_participle;
  Frame frame;
  uint32_t subject;  // kinds of noun that do it
  uint32_t object;   // kinds of noun it is done to; 0: none
  Case object_case = Case::accusative;
  bool perfect_with_sein = false;
  std::string_view german_first = {};  // "ich ..." where it is not the stem + e
};

/// Where an adjective stands among others, in both languages; two of one group never describe the same noun.
enum class Group { opinion, character, condition, size, age, colour };

struct Adjective {
  std::string_view english, german;
  Group group;
  uint32_t kinds;
};

enum class Tense { present, past, perfect, future, can, must };
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
  uint32_t kinds;  // of the noun it takes
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

std::span<const Noun> nouns();
std::span<const Verb> verbs();
std::span<const Adjective> adjectives();
/// "very": before an adjective.
std::span<const Adverb> degree_adverbs();
/// "often": before the English verb, in the German middle field.
std::span<const Adverb> middle_adverbs();
/// "today", "here": first or last in an English clause.
std::span<const Adverb> edge_adverbs();
/// Where something happens: belongs to the verb.
std::span<const Preposition> place_prepositions();
/// Where somebody goes: belongs to a verb of motion.
std::span<const Preposition> goal_prepositions();
/// "with": belongs to the noun before it. No preposition is in two of these lists, so attachment is never a
/// guess.
std::span<const Preposition> noun_prepositions();
std::span<const Pronoun> pronouns();
std::span<const Pair> subordinators();
std::span<const Pair> numerals();

/// Content words, function words and all: the number of English lemmas.
int lemma_count();

}  // namespace mh::grammar
