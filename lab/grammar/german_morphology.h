// Inflects German words.
#pragma once

#include <string>
#include <string_view>

#include "lab/grammar/english_morphology.h"
#include "lab/grammar/grammar_tree.h"

namespace mh::grammar {

/// Gender, case and number, in which an article, an adjective and a noun must agree.
struct Concord {
  Gender gender = Gender::kMasculine;  // not used in the plural
  Number number = Number::kSingular;
  Case grammatical_case = Case::kNominative;
};

/// The determiner: "dem", "dieser", "jedem", "einen", "keine", "unserem"; empty for none and for numerals.
std::string german_determiner(const NounPhrase& phrase, Concord concord);
/// Its lemma: "der", "dies", "jed", "ein", "kein", "mein".
std::string german_determiner_lemma(const NounPhrase& phrase);
/// The adjective with its ending: weak after "der", "dieser", "jeder"; mixed after "ein", "kein", "mein";
/// else strong.
std::string german_adjective(std::string_view base, Determiner after, Concord concord);
/// The noun; the dative plural gets an -n unless it ends in -n or -s.
std::string german_noun(const Noun& noun, Number number, Case grammatical_case);
/// The relative pronoun: "der", "den", "denen".
std::string german_relative_pronoun(Concord concord);

enum class GermanAuxiliary { kHaben, kSein, kWerden, kOennen, kMuessen };
std::string german_auxiliary(GermanAuxiliary auxiliary, bool past, Agreement agreement);
std::string_view german_auxiliary_lemma(GermanAuxiliary auxiliary);
/// The finite form without its prefix: "sehe", "sieht", "sehen", "sah", "sahen".
std::string german_finite(const Verb& verb, bool past, Agreement agreement);

}  // namespace mh::grammar
