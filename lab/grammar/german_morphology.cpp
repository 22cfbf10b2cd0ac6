#include "lab/grammar/german_morphology.h"

namespace mh::grammar {
namespace {

/// Endings by case and by column: masculine, feminine, neuter, plural.
using Endings = std::string_view[3][4];

constexpr Endings kDefinite = {
    {"der", "die", "das", "die"}, {"den", "die", "das", "die"}, {"dem", "der", "dem", "den"}};
constexpr Endings kDies = {{"er", "e", "es", "e"}, {"en", "e", "es", "e"}, {"em", "er", "em", "en"}};
constexpr Endings kEin = {{"", "e", "", "e"}, {"en", "e", "", "e"}, {"em", "er", "em", "en"}};
constexpr Endings kWeak = {{"e", "e", "e", "en"}, {"en", "e", "e", "en"}, {"en", "en", "en", "en"}};
constexpr Endings kMixed = {{"er", "e", "es", "en"}, {"en", "e", "es", "en"}, {"en", "en", "en", "en"}};

std::string_view ending(const Endings& endings, Concord concord) {
  const size_t column = concord.number == Number::kPlural ? 3 : static_cast<size_t>(concord.gender);
  return endings[static_cast<size_t>(concord.grammatical_case)][column];
}

}  // namespace

std::string german_determiner_lemma(const NounPhrase& phrase) {
  switch (phrase.determiner) {
    case Determiner::kThe:
      return "der";
    case Determiner::kA:
      return "ein";
    case Determiner::kThis:
      return "dies";
    case Determiner::kEvery:
      return "jed";
    case Determiner::kNo:
      return "kein";
    case Determiner::kPossessive:
      return std::string(phrase.possessor->german_possessive);
    case Determiner::kNone:
    case Determiner::kNumeral:
      break;
  }
  return "";
}

std::string german_determiner(const NounPhrase& phrase, Concord concord) {
  switch (phrase.determiner) {
    case Determiner::kThe:
      return std::string(ending(kDefinite, concord));
    case Determiner::kThis:
    case Determiner::kEvery:
      return german_determiner_lemma(phrase).append(ending(kDies, concord));
    case Determiner::kA:
    case Determiner::kNo:
    case Determiner::kPossessive:
      return german_determiner_lemma(phrase).append(ending(kEin, concord));
    case Determiner::kNone:
    case Determiner::kNumeral:
      break;
  }
  return "";
}

std::string german_adjective(std::string_view base, Determiner after, Concord concord) {
  const bool weak = after == Determiner::kThe || after == Determiner::kThis || after == Determiner::kEvery;
  const bool strong = after == Determiner::kNone || after == Determiner::kNumeral;
  if (base.ends_with('e')) base.remove_suffix(1);  // müde, müder
  // Without a determiner the adjective shows what the determiner would have shown.
  return std::string(base).append(ending(weak ? kWeak : strong ? kDies : kMixed, concord));
}

std::string german_noun(const Noun& noun, Number number, Case grammatical_case) {
  if (number == Number::kSingular) return std::string(noun.german);
  std::string form(noun.german_plural);
  if (grammatical_case == Case::kDative && !form.ends_with('n') && !form.ends_with('s')) form += 'n';
  return form;
}

std::string german_relative_pronoun(Concord concord) {
  if (concord.number == Number::kPlural && concord.grammatical_case == Case::kDative) return "denen";
  return std::string(ending(kDefinite, concord));
}

std::string_view german_auxiliary_lemma(GermanAuxiliary auxiliary) {
  constexpr std::string_view kLemmas[] = {"haben", "sein", "werden", "können", "müssen"};
  return kLemmas[static_cast<size_t>(auxiliary)];
}

std::string german_auxiliary(GermanAuxiliary auxiliary, bool past, Agreement agreement) {
  constexpr std::string_view kFirst[] = {"habe", "bin", "werde", "kann", "muss"};
  constexpr std::string_view kThird[] = {"hat", "ist", "wird", "kann", "muss"};
  constexpr std::string_view kPlural[] = {"haben", "sind", "werden", "können", "müssen"};
  const auto i = static_cast<size_t>(auxiliary);
  if (past && auxiliary == GermanAuxiliary::kSein) {
    return agreement.number == Number::kPlural ? "waren" : "war";
  }
  if (agreement.number == Number::kPlural) return std::string(kPlural[i]);
  return std::string(agreement.first_person ? kFirst[i] : kThird[i]);
}

std::string german_finite(const Verb& verb, bool past, Agreement agreement) {
  const bool plural = agreement.number == Number::kPlural;
  if (past) {
    std::string form(verb.german_past);
    if (plural) form += form.ends_with('e') ? "n" : "en";
    return form;
  }
  if (plural) return std::string(verb.german);
  if (!agreement.first_person) return std::string(verb.german_third);
  if (!verb.german_first.empty()) return std::string(verb.german_first);
  std::string stem(verb.german);
  stem.resize(stem.size() - (stem.ends_with("en") ? 2 : 1));
  return stem + "e";
}

}  // namespace mh::grammar
