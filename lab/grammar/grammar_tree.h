// The tree of a sentence, before it has words of either language. The grammar draws it at random, and both
// sides are made from it. Words of the two sides that come from the same node are aligned; the address of
// the node tells which these are.
#pragma once

#include <memory>
#include <vector>

#include "lab/grammar/lexicon.h"

namespace mh::grammar {

struct Clause;
struct PrepositionalPhrase;

enum class Determiner { kNone, kThe, kA, kThis, kEvery, kNo, kPossessive, kNumeral };

/// A noun phrase: a pronoun, or a noun with its determiner, adjectives and attributes.
struct NounPhrase {
  struct Modifier {
    const Adverb* degree = nullptr;
    const Adjective* adjective = nullptr;
  };
  const Pronoun* pronoun = nullptr;
  const Noun* noun = nullptr;
  Number number = Number::kSingular;
  Determiner determiner = Determiner::kNone;
  const Pronoun* possessor = nullptr;
  const Pair* numeral = nullptr;
  std::vector<Modifier> modifiers;
  std::unique_ptr<PrepositionalPhrase> attribute;  // "with the dog"
  std::unique_ptr<Clause> relative;
  std::unique_ptr<NounPhrase> conjunct;  // "and the cat"

  /// The person and number that the verb agrees with.
  Number agreement() const { return conjunct ? Number::kPlural : number; }
  bool first_person() const { return pronoun != nullptr && pronoun->first_person; }
};

struct PrepositionalPhrase {
  const Preposition* preposition = nullptr;
  NounPhrase noun;
};

enum class Role {
  kMain,
  kCoordinated,      // ", but ..."
  kAdverbial,        // "because ..."
  kComplement,       // "that ..."
  kRelativeSubject,  // "who sees the dog"
  kRelativeObject    // "whom the dog sees"
};

struct Clause {
  Role role = Role::kMain;
  const Pair* subordinator = nullptr;      // adverbial
  const NounPhrase* antecedent = nullptr;  // relative
  NounPhrase subject;                      // not in relative_subject
  const Verb* verb = nullptr;              // or a copula with an adjective
  NounPhrase::Modifier predicate;
  Tense tense = Tense::kPresent;
  bool negated = false;
  const Adverb* middle = nullptr;
  const Adverb* edge = nullptr;
  bool edge_first = false;
  std::unique_ptr<NounPhrase> indirect;
  std::unique_ptr<NounPhrase> object;  // not in relative_object
  std::unique_ptr<PrepositionalPhrase> place;
  bool place_first = false;
  std::unique_ptr<Clause> dependent;
  bool dependent_first = false;
  std::unique_ptr<Clause> second;

  bool subordinate() const { return role != Role::kMain && role != Role::kCoordinated; }
  const NounPhrase& doer() const { return role == Role::kRelativeSubject ? *antecedent : subject; }
};

}  // namespace mh::grammar
