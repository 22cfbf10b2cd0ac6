// The tree of a sentence, before it has words of either language. The grammar draws it at random, and both
// sides are made from it (linearise.h). Words of the two sides that come from the same node are aligned; the
// address of the node tells which these are.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "lab/grammar/lexicon.h"
#include "multihead/base/random.h"

namespace mh::grammar {

struct Clause;
struct PrepositionalPhrase;

enum class Determiner { kNone, kThe, kA, kThis, kEvery, kNo, kPossessive, kNumeral };

/// Person and number, in which a finite verb agrees with its subject.
struct Agreement {
  bool first_person = false;
  Number number = Number::kSingular;
  bool plural() const { return number == Number::kPlural; }
  bool third_singular() const { return !first_person && !plural(); }
};

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

  Agreement agreement() const {
    return {pronoun != nullptr && pronoun->first_person, conjunct ? Number::kPlural : number};
  }
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
  bool relative() const { return role == Role::kRelativeSubject || role == Role::kRelativeObject; }
  const NounPhrase& doer() const { return role == Role::kRelativeSubject ? *antecedent : subject; }
};

/// Whether training never shows this noun as the object of this verb: a function of the seed and the two
/// words.
bool is_held_out(uint64_t seed, const Verb& verb, const Noun& object);

struct Drawn {
  std::unique_ptr<Clause> clause;
  int depth = 0;          // how deep clauses are nested in the main one
  bool held_out = false;  // whether some verb has an object that is_held_out
};

/// A random main clause with clauses nested at most `depth` deep.
Drawn draw_sentence(Random& random, uint64_t seed, int depth);

}  // namespace mh::grammar
