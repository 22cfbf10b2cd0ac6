#include "lab/grammar/language.h"

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

/// Of an article or an adjective, which agrees with the noun; in the plural its gender does not matter.
std::string with_ending(std::string_view stem, const Endings& endings, const NounPhrase& of,
                        Case grammatical_case) {
  const size_t column = of.number == Number::kPlural ? 3 : static_cast<size_t>(of.noun->gender);
  return std::string(stem).append(endings[static_cast<size_t>(grammatical_case)][column]);
}

struct GermanAuxiliary {
  std::string_view lemma, first, third, plural;
  std::string_view present(Agreement agreement) const {
    return agreement.plural() ? plural : agreement.first_person ? first : third;
  }
};
constexpr GermanAuxiliary kHaben{"haben", "habe", "hat", "haben"}, kSein{"sein", "bin", "ist", "sind"},
    kWerden{"werden", "werde", "wird", "werden"}, kKoennen{"können", "kann", "kann", "können"},
    kMuessen{"müssen", "muss", "muss", "müssen"};

/// The finite form without its prefix: "sehe", "sieht", "sehen", "sah", "sahen".
std::string finite_form(const Verb& verb, bool past, Agreement agreement) {
  if (past) {
    std::string form(verb.german_past);
    if (agreement.plural()) form += form.ends_with('e') ? "n" : "en";
    return form;
  }
  if (agreement.plural()) return std::string(verb.german);
  if (!agreement.first_person) return std::string(verb.german_third);
  if (!verb.german_first.empty()) return std::string(verb.german_first);
  std::string stem(verb.german);
  stem.resize(stem.size() - (stem.ends_with("en") ? 2 : 1));
  return stem + "e";
}

class German final : public Language {
 public:
  German() : Language(true) {}

 private:
  void clause(const Clause& clause, Link link) override {
    const int id = link.id;
    marker(clause, id);
    const bool verb_last = clause.subordinate(), inverted = !verb_last && first_place(clause, id);
    if (!inverted) subject(clause, id);
    if (!verb_last) finite_verb(clause, link);
    if (inverted) subject(clause, id);
    middle_field(clause, id);
    right_bracket(clause, link);
    if (verb_last) finite_verb(clause, link);
    last_place(clause, id);
  }

  static bool simple(const Clause& clause) {
    return clause.tense == Tense::kPresent || clause.tense == Tense::kPast;
  }
  static std::string infinitive(const Verb& verb) { return std::string(verb.prefix).append(verb.german); }
  static const GermanAuxiliary& auxiliary_of(const Clause& clause) {
    if (clause.tense == Tense::kPerfect) return clause.verb->perfect_with_sein ? kSein : kHaben;
    return clause.tense == Tense::kCan ? kKoennen : clause.tense == Tense::kMust ? kMuessen : kWerden;
  }

  /// Without its prefix, unless it stands last.
  void finite_verb(const Clause& clause, Link link) {
    const Meaning self{&clause, kHead};
    const Agreement agreement = clause.doer().agreement();
    const bool past = clause.tense == Tense::kPast;
    if (!simple(clause)) {
      const GermanAuxiliary& aux = auxiliary_of(clause);
      add(aux.present(agreement), aux.lemma, "AUX", "aux", link.id, {&clause, kAuxiliary});
    } else if (clause.verb == nullptr) {
      const std::string_view form = !past ? kSein.present(agreement) : agreement.plural() ? "waren" : "war";
      add(form, "sein", "AUX", "cop", link.id, self);
    } else {
      const std::string prefix(clause.subordinate() ? clause.verb->prefix : "");
      put(link, prefix + finite_form(*clause.verb, past, agreement), infinitive(*clause.verb), "VERB", self);
    }
  }

  /// Infinitive or participle, or what the predicate says, or the prefix of a finite verb that stands second.
  void right_bracket(const Clause& clause, Link link) {
    const Meaning self{&clause, kHead};
    if (clause.verb == nullptr) {
      predicate(clause, link);
      if (!simple(clause)) add("sein", "AUX", "cop", link.id, self);
    } else if (!simple(clause)) {
      const std::string lemma = infinitive(*clause.verb);
      put(link, clause.tense == Tense::kPerfect ? clause.verb->german_participle : lemma, lemma, "VERB",
          self);
    } else if (!clause.subordinate() && !clause.verb->prefix.empty()) {
      add(clause.verb->prefix, "ADP", "compound:prt", link.id, self);
    }
  }

  void middle_field(const Clause& clause, int id) {
    const auto objects = [&](bool pronouns) {
      const auto now = [&](const auto& object) { return object && (object->pronoun != nullptr) == pronouns; };
      if (now(clause.indirect)) phrase(*clause.indirect, Case::kDative, link("iobj", id));
      if (now(clause.object)) phrase(*clause.object, clause.verb->object_case, link("obj", id));
    };
    objects(true);
    edge(clause, id);
    adverb(clause.middle, id, {&clause, kMiddle});
    objects(false);
    negation(clause, id);
    place(clause, id);
  }

  /// The dative plural gets an -n unless it ends in -n or -s.
  std::string noun(const NounPhrase& phrase, Case grammatical_case) const override {
    if (phrase.number == Number::kSingular) return std::string(phrase.noun->german);
    std::string form(phrase.noun->german_plural);
    const bool dative = grammatical_case == Case::kDative;
    if (dative && !form.ends_with('n') && !form.ends_with('s')) form += 'n';
    return form;
  }
  std::string_view pronoun(const Pronoun& pronoun, Case grammatical_case) const override {
    const std::string_view by_case[] = {pronoun.german, pronoun.german_accusative, pronoun.german_dative};
    return by_case[static_cast<size_t>(grammatical_case)];
  }
  /// Its ending is weak after "der", "dieser", "jeder"; mixed after "ein", "kein", "mein"; else strong.
  std::string adjective(const Adjective& adjective, const NounPhrase& of,
                        Case grammatical_case) const override {
    using enum Determiner;
    const bool weak = of.determiner == kThe || of.determiner == kThis || of.determiner == kEvery;
    const bool strong = of.determiner == kNone || of.determiner == kNumeral;
    std::string_view stem = adjective.german;
    if (stem.ends_with('e')) stem.remove_suffix(1);  // müde, müder
    // Without a determiner the adjective shows what the determiner would have shown.
    return with_ending(stem, weak ? kWeak : strong ? kDies : kMixed, of, grammatical_case);
  }
  /// "dem", "dieser", "jedem", "einen", "keine", "unserem".
  std::string determiner(const NounPhrase& phrase, std::string_view lemma,
                         Case grammatical_case) const override {
    if (phrase.determiner == Determiner::kThe) return with_ending("", kDefinite, phrase, grammatical_case);
    const bool dies = phrase.determiner == Determiner::kThis || phrase.determiner == Determiner::kEvery;
    return with_ending(lemma, dies ? kDies : kEin, phrase, grammatical_case);
  }
  /// "der", "den", "denen".
  std::string relative_pronoun(const NounPhrase& antecedent, Case grammatical_case) const override {
    const bool denen = antecedent.number == Number::kPlural && grammatical_case == Case::kDative;
    return denen ? "denen" : with_ending("", kDefinite, antecedent, grammatical_case);
  }
};

}  // namespace

Side german(const Clause& main) {
  return German().sentence(main);
}

}  // namespace mh::grammar
