// Forms of German words.
#pragma once

#include <string>
#include <string_view>

#include "lab/grammar/english_morphology.h"
#include "lab/grammar/grammar_tree.h"

namespace mh::grammar {

/// What an article, an adjective and a noun must agree in.
struct Concord {
  Gender gender = Gender::kMasculine;  // says nothing in the plural
  Number number = Number::kSingular;
  Case grammatical_case = Case::kNominative;
};

/// "dem", "dieser", "jedem", "einen", "keine", "unserem"; "" for none and for numerals.
std::string german_determiner(const NounPhrase& phrase, Concord concord);
/// "der", "dies", "jed", "ein", "kein", "mein": as a dictionary has it.
std::string german_determiner_lemma(const NounPhrase& phrase);
/// The adjective with its ending: weak after "der", "dieser", "jeder"; mixed after "ein", "kein", "mein";
/// else strong.
std::string german_adjective(std::string_view base, Determiner after, Concord concord);
/// The noun; in the dative plural with the -n that it takes unless it ends in -n or -s.
std::string german_noun(const Noun& noun, Number number, Case grammatical_case);
/// "der", "den", "denen": which clauses begin with.
std::string german_relative_pronoun(Concord concord);

enum class GermanAuxiliary { kHaben, kSein, kWerden, kOennen, kMuessen };
std::string german_auxiliary(GermanAuxiliary auxiliary, bool past, Agreement agreement);
std::string_view german_auxiliary_lemma(GermanAuxiliary auxiliary);
/// The finite form without its prefix: "sehe", "sieht", "sehen", "sah", "sahen".
std::string german_finite(const Verb& verb, bool past, Agreement agreement);

}  // namespace mh::grammar
