#include <set>

#include "lab/grammar/lexicon.h"

namespace mh::grammar {
namespace {

constexpr Kinds kPlace = kRoom | kSurface | kLandmark;
constexpr Kinds kInanimate = kObject | kOpens | kMoney | kRule | kPlace;

constexpr Adjective kAdjectives[] = {
    {"beautiful", "schön", Group::kOpinion, kAny},
    {"strange", "seltsam", Group::kOpinion, kAny},
    {"famous", "berühmt", Group::kOpinion, kPerson | kPlace | kText},
    {"sweet", "süß", Group::kOpinion, kFood | kDrink},
    {"clever", "klug", Group::kCharacter, kAlive},
    {"stupid", "dumm", Group::kCharacter, kAlive},
    {"friendly", "freundlich", Group::kCharacter, kAlive},
    {"strict", "streng", Group::kCharacter, kPerson | kRule},
    {"polite", "höflich", Group::kCharacter, kPerson},
    {"fast", "schnell", Group::kCharacter, kAlive | kVehicle},
    {"slow", "langsam", Group::kCharacter, kAlive | kVehicle},
    {"loud", "laut", Group::kCharacter, kAlive | kVehicle | kDevice},
    {"tired", "müde", Group::kCondition, kAlive},
    {"hungry", "hungrig", Group::kCondition, kAlive},
    {"strong", "stark", Group::kCondition, kAlive},
    {"weak", "schwach", Group::kCondition, kAlive},
    {"happy", "glücklich", Group::kCondition, kAlive},
    {"sad", "traurig", Group::kCondition, kAlive},
    {"sick", "krank", Group::kCondition, kAlive},
    {"rich", "reich", Group::kCondition, kPerson},
    {"poor", "arm", Group::kCondition, kPerson},
    {"cold", "kalt", Group::kCondition, kFood | kDrink | kRoom},
    {"warm", "warm", Group::kCondition, kFood | kDrink | kRoom},
    {"hot", "heiß", Group::kCondition, kFood | kDrink},
    {"modern", "modern", Group::kCondition, kVehicle | kDevice | kRoom},
    {"long", "lang", Group::kSize, kTime | kText | kClothes | kEvent},
    {"small", "klein", Group::kSize, kAny & ~kTime},
    {"big", "groß", Group::kSize, kAny & ~kTime},
    {"fat", "dick", Group::kSize, kAlive},
    {"heavy", "schwer", Group::kSize, kThing | kDevice},
    {"light", "leicht", Group::kSize, kThing | kDevice},
    {"old", "alt", Group::kAge, kAny & ~kTime},
    {"new", "neu", Group::kAge, kInanimate},
    {"young", "jung", Group::kAge, kAlive},
    {"red", "rot", Group::kColour, kFood | kThing | kVehicle | kDevice},
    {"green", "grün", Group::kColour, kFood | kThing | kVehicle | kDevice},
    {"blue", "blau", Group::kColour, kThing | kVehicle | kDevice},
    {"white", "weiß", Group::kColour, kAnimal | kThing | kVehicle | kLandmark},
    {"black", "schwarz", Group::kColour, kAnimal | kThing | kVehicle},
};

constexpr Adverb kDegree[] = {{"very", "sehr"}, {"rather", "ziemlich"}, {"extremely", "äußerst"}};

constexpr uint32_t kPast = bit(Tense::kPast),
                   kNow = bit(Tense::kPresent) | bit(Tense::kCan) | bit(Tense::kMust),
                   kLater = bit(Tense::kFuture) | bit(Tense::kCan) | bit(Tense::kMust);

constexpr Adverb kMiddleAdverbs[] = {
    {"often", "oft"},
    {"always", "immer"},
    {"never", "nie", kAnyTense & ~bit(Tense::kMust)},  // "must never" would be "darf nie"
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
    {"in", "in", Case::kDative, kRoom},
    {"on", "auf", Case::kDative, kSurface},
    {"under", "unter", Case::kDative, kSurface},
    {"behind", "hinter", Case::kDative, kLandmark},
    {"beside", "neben", Case::kDative, kLandmark},
    {"for", "für", Case::kAccusative, kPerson},
};
constexpr Preposition kGoalPrepositions[] = {
    {"into", "in", Case::kAccusative, kRoom},
    {"onto", "auf", Case::kAccusative, kSurface},
    {"to", "zu", Case::kDative, kPerson | kLandmark},
    {"through", "durch", Case::kAccusative, kRoom},
};
constexpr Preposition kNounPrepositions[] = {
    {"with", "mit", Case::kDative, kAnimal | kThing | kText},
    {"without", "ohne", Case::kAccusative, kAnimal | kThing | kText},
    {"from", "aus", Case::kDative, kRoom},
};

constexpr Pronoun kPronouns[] = {
    {"I", "me", "my", "ich", "mich", "mir", "mein", true, Number::kSingular},
    {"he", "him", "his", "er", "ihn", "ihm", "sein", false, Number::kSingular},
    {"she", "her", "her", "sie", "sie", "ihr", "ihr", false, Number::kSingular},
    {"we", "us", "our", "wir", "uns", "uns", "unser", true, Number::kPlural},
    {"they", "them", "their", "sie", "sie", "ihnen", "ihr", false, Number::kPlural},
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
