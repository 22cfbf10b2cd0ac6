#include "lab/grammar/derivation.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace mh::grammar {

bool is_held_out(uint64_t seed, const Verb& verb, const Noun& object) {
  // A verb of few objects keeps them all: "drink" must be learned too.
  constexpr int kFew = 10;
  const auto all = nouns();
  const auto fits = [&](const Noun& noun) { return (noun.kinds & verb.object) != 0; };
  if (std::count_if(all.begin(), all.end(), fits) < kFew) return false;
  const auto v = static_cast<uint32_t>(&verb - verbs().data());
  const auto n = static_cast<uint32_t>(&object - all.data());
  const auto bits =
      philox({v, n, 0, 0x68656c64}, {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
  return bits[0] % 16 == 0;
}

namespace {

/// What of a clause its noun phrases must know.
struct Scope {
  int budget = 0;        // how deep clauses may still nest here
  bool may_deny = true;  // "no dog": once a clause, and not beside another negation or adverb
};

class Derivation {
 public:
  Derivation(Random& random, uint64_t seed) : random_(random), seed_(seed) {}

  std::unique_ptr<Clause> main_clause(int budget) {
    auto clause = std::make_unique<Clause>();
    fill(*clause, budget);
    if (!(clause->dependent && !clause->dependent_first) && chance(14)) {
      clause->second = std::make_unique<Clause>();
      clause->second->role = Role::kCoordinated;
      fill(*clause->second, 0);
    }
    return clause;
  }

  int depth = 0;
  bool held_out = false;

 private:
  bool chance(uint32_t percent) { return random_.below(100) < percent; }

  template <class T, class Keep>
  const T* pick(std::span<const T> all, Keep keep) {
    std::vector<const T*> kept;
    for (const T& one : all) {
      if (keep(one)) kept.push_back(&one);
    }
    return kept.empty() ? nullptr : kept[random_.below(static_cast<uint32_t>(kept.size()))];
  }
  template <class T>
  const T* pick(std::span<const T> all) {
    return &all[random_.below(static_cast<uint32_t>(all.size()))];
  }
  const Noun* pick_noun(Kinds kinds) {
    return pick(nouns(), [&](const Noun& noun) { return (noun.kinds & kinds) != 0; });
  }

  void draw_determiner(NounPhrase& phrase, Scope& scope) {
    const uint32_t draw = random_.below(100);
    if (draw < 42) {
      phrase.determiner = Determiner::kThe;
    } else if (draw < 62) {
      phrase.determiner = phrase.number == Number::kSingular ? Determiner::kA : Determiner::kNone;
    } else if (draw < 74) {
      phrase.determiner = Determiner::kPossessive;
      phrase.possessor = pick(pronouns());
    } else if (draw < 84) {
      phrase.determiner = Determiner::kThis;
    } else if (draw < 94) {
      phrase.determiner = phrase.number == Number::kSingular ? Determiner::kEvery : Determiner::kNumeral;
      if (phrase.number == Number::kPlural) phrase.numeral = pick(numerals());
    } else {
      phrase.determiner = scope.may_deny ? Determiner::kNo : Determiner::kThe;
      scope.may_deny = false;
    }
  }

  void draw_modifiers(NounPhrase& phrase) {
    const uint32_t draw = random_.below(100);
    const int count = draw < 44 ? 0 : draw < 82 ? 1 : 2;
    for (int i = 0; i < count; ++i) {
      NounPhrase::Modifier modifier;
      modifier.adjective = pick(adjectives(), [&](const Adjective& adjective) {
        const bool used = i > 0 && phrase.modifiers[0].adjective->group == adjective.group;
        return (adjective.kinds & phrase.noun->kinds) != 0 && !used;
      });
      if (count == 1 && chance(30)) modifier.degree = pick(degree_adverbs());
      phrase.modifiers.push_back(modifier);
    }
    if (count == 2 && phrase.modifiers[1].adjective->group < phrase.modifiers[0].adjective->group) {
      std::swap(phrase.modifiers[0], phrase.modifiers[1]);
    }
  }

  /// A noun of the kinds given with determiner and adjectives and nothing after it.
  NounPhrase plain_phrase(const Noun* noun, Scope& scope) {
    NounPhrase phrase;
    phrase.noun = noun;
    phrase.number = chance(28) ? Number::kPlural : Number::kSingular;
    draw_determiner(phrase, scope);
    draw_modifiers(phrase);
    return phrase;
  }

  /// The same with an attribute, a second noun or a relative clause; at most one of them, so that none can be
  /// read as belonging to another.
  void extend(NounPhrase& phrase, Kinds kinds, Scope& scope) {
    const uint32_t draw = random_.below(100);
    if (draw < 14) {
      const bool person = (phrase.noun->kinds & kPerson) != 0;
      phrase.attribute = std::make_unique<PrepositionalPhrase>();
      auto& attribute = *phrase.attribute;
      attribute.preposition = person ? pick(noun_prepositions()) : &noun_prepositions().back();
      Scope inner{0, false};
      attribute.noun = plain_phrase(pick_noun(attribute.preposition->kinds), inner);
    } else if (draw < 22) {
      const Noun* noun = pick_noun(kinds);
      if (noun == phrase.noun) return;
      Scope inner{0, false};
      phrase.conjunct = std::make_unique<NounPhrase>(plain_phrase(noun, inner));
    } else if (draw < 37 && scope.budget > 0) {
      const bool as_object = chance(30);
      draw_relative(phrase, as_object ? Role::kRelativeObject : Role::kRelativeSubject, scope.budget - 1);
    }
  }

  void draw_relative(NounPhrase& phrase, Role role, int budget) {
    if (role == Role::kRelativeObject && phrase.determiner == Determiner::kNo) return;
    auto clause = std::make_unique<Clause>();
    clause->role = role;
    clause->antecedent = &phrase;
    if (!choose_verb(*clause, budget)) return;
    phrase.relative = std::move(clause);
    fill(*phrase.relative, budget);
  }

  NounPhrase subject_phrase(Kinds kinds, Scope& scope) {
    if ((kinds & kPerson) != 0 && chance(26)) {
      NounPhrase phrase;
      phrase.pronoun = pick(pronouns());
      phrase.number = phrase.pronoun->number;
      return phrase;
    }
    return plain_phrase(pick_noun(kinds), scope);
  }

  /// Chooses what the clause predicates. False when nothing fits its antecedent.
  bool choose_verb(Clause& clause, int budget) {
    if (clause.role == Role::kRelativeObject) {
      clause.verb = pick(verbs(), [&](const Verb& verb) {
        return verb.frame == Frame::kTransitive && (verb.object & clause.antecedent->noun->kinds) != 0;
      });
      if (clause.verb != nullptr) note_pair(*clause.verb, *clause.antecedent->noun);
      return clause.verb != nullptr;
    }
    const uint32_t draw = random_.below(100);
    if (draw < 10) return choose_adjective(clause);
    const Frame frame = draw < 22   ? Frame::kIntransitive
                        : draw < 31 ? Frame::kMotion
                        : draw < 81 ? Frame::kTransitive
                        : draw < 91 ? Frame::kDitransitive
                                    : (budget > 0 ? Frame::kClausal : Frame::kTransitive);
    clause.verb = pick(verbs(), [&](const Verb& verb) {
      const bool fits =
          clause.role != Role::kRelativeSubject || (verb.subject & clause.antecedent->noun->kinds) != 0;
      return verb.frame == frame && fits;
    });
    return clause.verb != nullptr || choose_adjective(clause);
  }
  bool choose_adjective(Clause& clause) {
    clause.predicate.adjective = pick(adjectives(), [&](const Adjective& adjective) {
      return clause.role != Role::kRelativeSubject || (adjective.kinds & clause.antecedent->noun->kinds) != 0;
    });
    if (chance(30)) clause.predicate.degree = pick(degree_adverbs());
    return true;
  }

  void note_pair(const Verb& verb, const Noun& noun) {
    held_out = held_out || is_held_out(seed_, verb, noun);
  }

  void draw_tense(Clause& clause) {
    const uint32_t draw = random_.below(100);
    clause.tense = draw < 42   ? Tense::kPresent
                   : draw < 68 ? Tense::kPast
                   : draw < 79 ? Tense::kPerfect
                   : draw < 87 ? Tense::kFuture
                   : draw < 94 ? Tense::kCan
                               : Tense::kMust;
    const bool copula = clause.verb == nullptr;
    if (copula && clause.tense != Tense::kPast && clause.tense != Tense::kFuture)
      clause.tense = Tense::kPresent;
  }

  void draw_adverbs(Clause& clause, Scope& scope) {
    const auto fits = [&](const Adverb& adverb) {
      return (adverb.tenses & bit(clause.tense)) != 0 && (adverb.with_copula || clause.verb != nullptr);
    };
    if (clause.tense != Tense::kMust && chance(11)) {
      clause.negated = true;
      scope.may_deny = false;
    } else if (chance(26)) {
      clause.middle = pick(middle_adverbs(), fits);
      scope.may_deny = false;
    }
    if (chance(24)) {
      clause.edge = pick(edge_adverbs(), fits);
      // Only a main clause can begin with it: verb-last clauses begin with their marker.
      clause.edge_first = !clause.subordinate() && chance(50);
    }
  }

  void draw_objects(Clause& clause, Scope& scope) {
    const Verb& verb = *clause.verb;
    // A relative clause hangs on the subject or on the object, not on both.
    if (clause.role != Role::kRelativeObject && verb.frame == Frame::kTransitive) {
      clause.object = std::make_unique<NounPhrase>();
      if ((verb.object & kPerson) != 0 && chance(16)) {
        draw_object_pronoun(*clause.object, clause.doer());
      } else {
        *clause.object = object_phrase(clause, scope);
        const bool nested_subject = clause.subject.relative != nullptr;
        Scope inner{nested_subject ? 0 : scope.budget, false};
        const Kinds kinds = clause.verb->object;
        extend(*clause.object, kinds, inner);
        if (clause.object->conjunct) note_pair(verb, *clause.object->conjunct->noun);
        if (clause.negated && clause.object->conjunct) make_definite(*clause.object->conjunct);
      }
    }
    if (verb.frame == Frame::kDitransitive) {
      clause.indirect = std::make_unique<NounPhrase>();
      if (chance(45)) {
        draw_object_pronoun(*clause.indirect, clause.doer());
      } else {
        Scope inner{0, false};
        *clause.indirect = plain_phrase(pick_noun(kPerson), inner);
        if (clause.negated) make_definite(*clause.indirect);
      }
      clause.object = std::make_unique<NounPhrase>(object_phrase(clause, scope));
      // "shows her dogs books" can be read in two ways; with a determiner it cannot.
      if (clause.object->determiner == Determiner::kNone) clause.object->determiner = Determiner::kThe;
    }
  }
  NounPhrase object_phrase(const Clause& clause, Scope& scope) {
    const Noun* noun = pick_noun(clause.verb->object);
    note_pair(*clause.verb, *noun);
    NounPhrase phrase = plain_phrase(noun, scope);
    if (clause.negated) make_definite(phrase);
    return phrase;
  }
  /// "nicht" beside "ein" would be "kein": with "not" objects are definite.
  void make_definite(NounPhrase& phrase) {
    if (phrase.determiner != Determiner::kPossessive && phrase.determiner != Determiner::kThis) {
      phrase.determiner = Determiner::kThe;
      phrase.numeral = nullptr;
    }
  }
  void draw_object_pronoun(NounPhrase& phrase, const NounPhrase& doer) {
    phrase.pronoun = pick(pronouns(), [&](const Pronoun& pronoun) {
      return doer.pronoun == nullptr || pronoun.first_person != doer.pronoun->first_person;
    });
    phrase.number = phrase.pronoun->number;
  }

  void draw_place(Clause& clause) {
    const bool motion = clause.verb->frame == Frame::kMotion;
    if (!motion && !chance(clause.verb->frame == Frame::kIntransitive ? 40 : 13)) return;
    const auto all = motion ? goal_prepositions() : place_prepositions();
    const bool gift =
        clause.verb->frame == Frame::kTransitive && clause.verb->object_case == Case::kAccusative;
    clause.place = std::make_unique<PrepositionalPhrase>();
    clause.place->preposition = pick(all, [&](const Preposition& preposition) {
      return motion || preposition.governs == Case::kDative || gift;
    });
    Scope inner{0, false};
    clause.place->noun = plain_phrase(pick_noun(clause.place->preposition->kinds), inner);
    clause.place_first = !motion && !clause.subordinate() && !clause.edge_first && !clause.negated &&
                         clause.place->preposition->governs == Case::kDative && chance(40);
  }

  void draw_dependent(Clause& clause, int budget, bool open) {
    if (budget == 0) return;
    const bool clausal = clause.verb != nullptr && clause.verb->frame == Frame::kClausal;
    if (!clausal && !chance(15)) return;
    clause.dependent_first = !clausal && clause.role == Role::kMain && (!open || chance(45)) &&
                             !clause.edge_first && !clause.place_first;
    // After an object with a relative clause nobody could tell whom it belongs to.
    if (!clause.dependent_first && !open) return;
    clause.dependent = std::make_unique<Clause>();
    clause.dependent->role = clausal ? Role::kComplement : Role::kAdverbial;
    if (!clausal) clause.dependent->subordinator = pick(subordinators());
    fill(*clause.dependent, budget - 1);
  }

  void fill(Clause& clause, int budget) {
    ++nesting_;
    depth = std::max(depth, nesting_ - 1);
    if (clause.verb == nullptr && clause.predicate.adjective == nullptr) choose_verb(clause, budget);
    Scope scope{budget, true};
    draw_tense(clause);
    draw_adverbs(clause, scope);
    if (clause.role != Role::kRelativeSubject) {
      const Kinds kinds = clause.verb != nullptr ? clause.verb->subject : clause.predicate.adjective->kinds;
      clause.subject = subject_phrase(kinds, scope);
      if (clause.negated && clause.subject.determiner == Determiner::kEvery) make_definite(clause.subject);
      // Inside a relative clause the subject stays short: "the dog which the man who ... sees" helps nobody.
      if (clause.subject.noun != nullptr && clause.role != Role::kRelativeObject) {
        extend(clause.subject, kinds, scope);
      }
    }
    bool open = true;  // whether what follows the objects can only belong to this clause
    if (clause.verb != nullptr) {
      draw_objects(clause, scope);
      open = clause.object == nullptr || clause.object->relative == nullptr;
      if (open && clause.verb->frame != Frame::kClausal) draw_place(clause);
      if (!open && !clause.edge_first) clause.edge = nullptr;
    }
    draw_dependent(clause, budget, open);
    --nesting_;
  }

  Random& random_;
  uint64_t seed_;
  int nesting_ = 0;
};

}  // namespace

Drawn draw_sentence(Random& random, uint64_t seed, int depth) {
  Derivation derivation(random, seed);
  Drawn drawn;
  drawn.clause = derivation.main_clause(depth);
  drawn.depth = derivation.depth;
  drawn.held_out = derivation.held_out;
  return drawn;
}

}  // namespace mh::grammar
