#include <set>

#include "lab/grammar/lexicon.h"

namespace mh::grammar {
namespace {

constexpr Kinds kPlace = kRoom | kSurface | kLandmark;
constexpr Kinds kInanimate = kObject | kOpens | kMoney | kRule | kPlace;

constexpr Adjective kAdjectives[] = {
    {"beautiful", "schön", Group::opinion, kAny},
    {"strange", "seltsam", Group::opinion, kAny},
    {"famous", "berühmt", Group::opinion, kPerson | kPlace | kText},
    {"sweet", "süß", Group::opinion, kFood | kDrink},
    {"clever", "klug", Group::character, kAlive},
    {"stupid", "dumm", Group::character, kAlive},
    {"friendly", "freundlich", Group::character, kAlive},
    {"strict", "streng", Group::character, kPerson | kRule},
    {"polite", "höflich", Group::character, kPerson},
    {"fast", "schnell", Group::character, kAlive | kVehicle},
    {"slow", "langsam", Group::character, kAlive | kVehicle},
    {"loud", "laut", Group::character, kAlive | kVehicle | kDevice},
    {"tired", "müde", Group::condition, kAlive},
    {"hungry", "hungrig", Group::condition, kAlive},
    {"strong", "stark", Group::condition, kAlive},
    {"weak", "schwach", Group::condition, kAlive},
    {"happy", "glücklich", Group::condition, kAlive},
    {"sad", "traurig", Group::condition, kAlive},
    {"sick", "krank", Group::condition, kAlive},
    {"rich", "reich", Group::condition, kPerson},
    {"poor", "arm", Group::condition, kPerson},
    {"cold", "kalt", Group::condition, kFood | kDrink | kRoom},
    {"warm", "warm", Group::condition, kFood | kDrink | kRoom},
    {"hot", "heiß", Group::condition, kFood | kDrink},
    {"modern", "modern", Group::condition, kVehicle | kDevice | kRoom},
    {"long", "lang", Group::size, kTime | kText | kClothes | kEvent},
    {"small", "klein", Group::size, kAny & ~kTime},
    {"big", "groß", Group::size, kAny & ~kTime},
    {"fat", "dick", Group::size, kAlive},
    {"heavy", "schwer", Group::size, kThing | kDevice},
    {"light", "leicht", Group::size, kThing | kDevice},
    {"old", "alt", Group::age, kAny & ~kTime},
    {"new", "neu", Group::age, kInanimate},
    {"young", "jung", Group::age, kAlive},
    {"red", "rot", Group::colour, kFood | kThing | kVehicle | kDevice},
    {"green", "grün", Group::colour, kFood | kThing | kVehicle | kDevice},
    {"blue", "blau", Group::colour, kThing | kVehicle | kDevice},
    {"white", "weiß", Group::colour, kAnimal | kThing | kVehicle | kLandmark},
    {"black", "schwarz", Group::colour, kAnimal | kThing | kVehicle},
};

constexpr Adverb kDegree[] = {{"very", "sehr"}, {"rather", "ziemlich"}, {"extremely", "äußerst"}};

constexpr uint32_t kPast = bit(Tense::past), kNow = bit(Tense::present) | bit(Tense::can) | bit(Tense::must),
                   kLater = bit(Tense::future) | bit(Tense::can) | bit(Tense::must);

constexpr Adverb kMiddleAdverbs[] = {
    {"often", "oft"},
    {"always", "immer"},
    {"never", "nie", kAnyTense & ~bit(Tense::must)},  // "must never" would be "darf nie"
    {"rarely", "selten"},
    {"sometimes", "manchmal"},
    {"usually", "meistens"},
    {"probably", "wahrscheinlich"},
    {"perhaps", "vielleicht"},
    {"already", "schon", kAnyTense, false},
    {"finally", "endlich", kAnyTense, false},
    {"secretly", "heimlich", kAnyTense, false},
    {"gladly", "gern", kAnyTense, false},
    {"quietly", "leise", kAnyTense, false},
    {"suddenly", "plötzlich", kPast, false},
};
constexpr Adverb kEdgeAdverbs[] = {
    {"today", "heute"},
    {"here", "hier"},
    {"there", "dort"},
    {"yesterday", "gestern", kPast},
    {"recently", "neulich", kPast},
    {"now", "jetzt", kNow},
    {"tomorrow", "morgen", kLater},
    {"soon", "bald", kLater},
};

constexpr Preposition kPlacePrepositions[] = {
    {"in", "in", Case::dative, kRoom},
    {"on", "auf", Case::dative, kSurface},
    {"under", "unter", Case::dative, kSurface},
    {"behind", "hinter", Case::dative, kLandmark},
    {"beside", "neben", Case::dative, kLandmark},
    {"for", "für", Case::accusative, kPerson},
};
constexpr Preposition kGoalPrepositions[] = {
    {"into", "in", Case::accusative, kRoom},
    {"onto", "auf", Case::accusative, kSurface},
    {"to", "zu", Case::dative, kPerson | kLandmark},
    {"through", "durch", Case::accusative, kRoom},
};
constexpr Preposition kNounPrepositions[] = {
    {"with", "mit", Case::dative, kAnimal | kThing | kText},
    {"without", "ohne", Case::accusative, kAnimal | kThing | kText},
    {"from", "aus", Case::dative, kRoom},
};

constexpr Pronoun kPronouns[] = {
    {"I", "me", "my", "ich", "mich", "mir", "mein", true, Number::singular},
    {"he", "him", "his", "er", "ihn", "ihm", "sein", false, Number::singular},
    {"she", "her", "her", "sie", "sie", "ihr", "ihr", false, Number::singular},
    {"we", "us", "our", "wir", "uns", "uns", "unser", true, Number::plural},
    {"they", "them", "their", "sie", "sie", "ihnen", "ihr", false, Number::plural},
};

constexpr Pair kSubordinators[] = {{"because", "weil"},  {"if", "wenn"},      {"although", "obwohl"},
                                   {"while", "während"}, {"before", "bevor"}, {"until", "bis"}};
constexpr Pair kNumerals[] = {{"two", "zwei"}, {"three", "drei"}, {"four", "vier"}, {"five", "fünf"}};

}  // namespace

std::span<const Adjective> adjectives() {
  return kAdjectives;
}
std::span<const Adverb> degree_adverbs() {
  return kDegree;
}
std::span<const Adverb> middle_adverbs() {
  return kMiddleAdverbs;
}
std::span<const Adverb> edge_adverbs() {
  return kEdgeAdverbs;
}
std::span<const Preposition> place_prepositions() {
  return kPlacePrepositions;
}
std::span<const Preposition> goal_prepositions() {
  return kGoalPrepositions;
}
std::span<const Preposition> noun_prepositions() {
  return kNounPrepositions;
}
std::span<const Pronoun> pronouns() {
  return kPronouns;
}
std::span<const Pair> subordinators() {
  return kSubordinators;
}
std::span<const Pair> numerals() {
  return kNumerals;
}

int lemma_count() {
  // the, a, this, every, no; who, which; be, do, have, will, can, must; not, that, but, and
  constexpr size_t kFunctionWords = 17;
  std::set<std::string_view> of_verbs;  // several rows are one lemma
  for (const Verb& verb : verbs()) of_verbs.insert(verb.english);
  return static_cast<int>(nouns().size() + of_verbs.size() + adjectives().size() + degree_adverbs().size() +
                          middle_adverbs().size() + edge_adverbs().size() + place_prepositions().size() +
                          goal_prepositions().size() + noun_prepositions().size() + 2 * pronouns().size() +
                          subordinators().size() + numerals().size() + kFunctionWords);
}

}  // namespace mh::grammar
