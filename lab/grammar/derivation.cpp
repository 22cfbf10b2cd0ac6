#include "lab/grammar/derivation.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace mh::grammar {
namespace {

/// Whether a noun has these kinds, or an adjective goes with them.
auto one_of(Kinds kinds) {
  return [kinds](const auto& word) { return (word.kinds & kinds) != 0; };
}

}  // namespace

bool is_held_out(uint64_t seed, const Verb& verb, const Noun& object) {
  // A verb of few objects keeps them all: "drink" must be learned too.
  constexpr int kFew = 10;
  const std::vector<Noun>& all = lexicon().nouns;
  if (std::count_if(all.begin(), all.end(), one_of(verb.object)) < kFew) return false;
  const auto v = static_cast<uint32_t>(&verb - lexicon().verbs.data());
  const auto n = static_cast<uint32_t>(&object - all.data());
  const auto bits =
      philox({v, n, 0, 0x68656c64}, {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
  return bits[0] % 16 == 0;
}

namespace {

/// A budget is how deep clauses may still nest. Who may deny has "no dog" once a clause, and not beside another
/// negation or adverb.
class Derivation {
 public:
  Derivation(Random& random, uint64_t seed) : random_(random), seed_(seed) {}

  std::unique_ptr<Clause> main_clause(int budget) {
    auto clause = std::make_unique<Clause>();
    fill(*clause, budget);
    if ((!clause->dependent || clause->dependent_first) && chance(14)) {
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
  const T* pick(const std::vector<T>& all, Keep keep) {
    std::vector<const T*> kept;
    for (const T& one : all) {
      if (keep(one)) kept.push_back(&one);
    }
    return kept.empty() ? nullptr : kept[random_.below(static_cast<uint32_t>(kept.size()))];
  }
  template <class T>
  const T* pick(const std::vector<T>& all) {
    return &all[random_.below(static_cast<uint32_t>(all.size()))];
  }
  const Noun* pick_noun(Kinds kinds) { return pick(words_.nouns, one_of(kinds)); }

  void draw_determiner(NounPhrase& phrase, bool may_deny) {
    using enum Determiner;
    const uint32_t draw = random_.below(100);
    const bool plural = phrase.number == Number::kPlural;
    phrase.determiner = draw < 42   ? kThe
                        : draw < 62 ? (plural ? kNone : kA)
                        : draw < 74 ? kPossessive
                        : draw < 84 ? kThis
                        : draw < 94 ? (plural ? kNumeral : kEvery)
                                    : (may_deny ? kNo : kThe);
    if (phrase.determiner == kPossessive) phrase.possessor = pick(words_.pronouns);
    if (phrase.determiner == kNumeral) phrase.numeral = pick(words_.numerals);
  }

  void draw_modifiers(NounPhrase& phrase) {
    const uint32_t draw = random_.below(100);
    const int count = draw < 44 ? 0 : draw < 82 ? 1 : 2;
    for (int i = 0; i < count; ++i) {
      auto& [degree, adjective] = phrase.modifiers.emplace_back();
      adjective = pick(words_.adjectives, [&](const Adjective& one) {
        const bool used = i > 0 && phrase.modifiers[0].adjective->group == one.group;
        return one_of(phrase.noun->kinds)(one) && !used;
      });
      if (count == 1 && chance(30)) degree = pick(words_.degree_adverbs);
    }
    if (count == 2 && phrase.modifiers[1].adjective->group < phrase.modifiers[0].adjective->group)
      std::swap(phrase.modifiers[0], phrase.modifiers[1]);
  }

  /// A noun of the kinds given with determiner and adjectives and nothing after it.
  NounPhrase plain_phrase(const Noun* noun, bool may_deny = false) {
    NounPhrase phrase;
    phrase.noun = noun;
    phrase.number = chance(28) ? Number::kPlural : Number::kSingular;
    draw_determiner(phrase, may_deny);
    draw_modifiers(phrase);
    return phrase;
  }

  std::unique_ptr<PrepositionalPhrase> prepositional(const Preposition* preposition) {
    auto phrase = std::make_unique<PrepositionalPhrase>();
    phrase->preposition = preposition;
    phrase->noun = plain_phrase(pick_noun(preposition->kinds));
    return phrase;
  }

  /// A plain phrase gets an attribute, a second noun or a relative clause; at most one of them, so that none can be
  /// read as belonging to another.
  void extend(NounPhrase& phrase, Kinds kinds, int budget) {
    const uint32_t draw = random_.below(100);
    if (draw < 14) {
      const bool person = (phrase.noun->kinds & kPerson) != 0;
      phrase.attribute =
          prepositional(person ? pick(words_.noun_prepositions) : &words_.noun_prepositions.back());
    } else if (draw < 22) {
      const Noun* noun = pick_noun(kinds);
      if (noun == phrase.noun) return;
      phrase.conjunct = std::make_unique<NounPhrase>(plain_phrase(noun));
    } else if (draw < 37 && budget > 0) {
      auto clause = std::make_unique<Clause>();
      clause->role = chance(30) ? Role::kRelativeObject : Role::kRelativeSubject;
      clause->antecedent = &phrase;
      if (clause->role == Role::kRelativeObject && phrase.determiner == Determiner::kNo) return;
      if (!choose_verb(*clause, budget - 1)) return;
      phrase.relative = std::move(clause);
      fill(*phrase.relative, budget - 1);
    }
  }

  NounPhrase subject_phrase(Kinds kinds, bool may_deny) {
    const bool pronoun = (kinds & kPerson) != 0 && chance(26);
    return pronoun ? pronoun_phrase(pick(words_.pronouns)) : plain_phrase(pick_noun(kinds), may_deny);
  }
  static NounPhrase pronoun_phrase(const Pronoun* pronoun) {
    NounPhrase phrase;
    phrase.pronoun = pronoun;
    phrase.number = pronoun->number;
    return phrase;
  }
  NounPhrase object_pronoun(const NounPhrase& doer) {
    return pronoun_phrase(pick(words_.pronouns, [&](const Pronoun& pronoun) {
      return doer.pronoun == nullptr || pronoun.first_person != doer.pronoun->first_person;
    }));
  }

  /// Chooses what the clause predicates. False when nothing fits its antecedent.
  bool choose_verb(Clause& clause, int budget) {
    if (clause.role == Role::kRelativeObject) {
      const Noun& object = *clause.antecedent->noun;
      clause.verb = pick(words_.verbs, [&](const Verb& verb) {
        return verb.frame == Frame::kTransitive && one_of(verb.object)(object);
      });
      if (clause.verb != nullptr) note_pair(*clause.verb, object);
      return clause.verb != nullptr;
    }
    const uint32_t draw = random_.below(100);
    if (draw < 10) return choose_adjective(clause);
    const Frame frame = draw < 22   ? Frame::kIntransitive
                        : draw < 31 ? Frame::kMotion
                        : draw < 81 ? Frame::kTransitive
                        : draw < 91 ? Frame::kDitransitive
                                    : (budget > 0 ? Frame::kClausal : Frame::kTransitive);
    clause.verb = pick(words_.verbs, [&](const Verb& verb) {
      return verb.frame == frame && (verb.subject & doers(clause)) != 0;
    });
    return clause.verb != nullptr || choose_adjective(clause);
  }
  bool choose_adjective(Clause& clause) {
    clause.predicate.adjective = pick(words_.adjectives, one_of(doers(clause)));
    if (chance(30)) clause.predicate.degree = pick(words_.degree_adverbs);
    return true;
  }
  /// The kinds of nouns that may be its subject: any, unless the clause hangs on one.
  static Kinds doers(const Clause& clause) {
    return clause.role == Role::kRelativeSubject ? clause.antecedent->noun->kinds : ~Kinds{0};
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
    if (clause.verb == nullptr && clause.tense != Tense::kPast && clause.tense != Tense::kFuture)
      clause.tense = Tense::kPresent;
  }

  void draw_adverbs(Clause& clause) {
    const auto fits = [&](const Adverb& adverb) {
      return (adverb.tenses & bit(clause.tense)) != 0 && (adverb.with_copula || clause.verb != nullptr);
    };
    clause.negated = clause.tense != Tense::kMust && chance(11);
    if (!clause.negated && chance(26)) clause.middle = pick(words_.middle_adverbs, fits);
    if (!chance(24)) return;
    clause.edge = pick(words_.edge_adverbs, fits);
    // Only a main clause can begin with it: verb-last clauses begin with their marker.
    clause.edge_first = !clause.subordinate() && chance(50);
  }

  void draw_objects(Clause& clause, int budget, bool may_deny) {
    const Verb& verb = *clause.verb;
    // A relative clause hangs on the subject or on the object, not on both.
    if (clause.role != Role::kRelativeObject && verb.frame == Frame::kTransitive) {
      const bool pronoun = (verb.object & kPerson) != 0 && chance(16);
      clause.object = std::make_unique<NounPhrase>(pronoun ? object_pronoun(clause.doer())
                                                           : object_phrase(clause, may_deny));
      if (pronoun) return;
      extend(*clause.object, verb.object, clause.subject.relative ? 0 : budget);
      if (clause.object->conjunct) {
        note_pair(verb, *clause.object->conjunct->noun);
        if (clause.negated) make_definite(*clause.object->conjunct);
      }
    }
    if (verb.frame == Frame::kDitransitive) {
      const bool pronoun = chance(45);
      clause.indirect = std::make_unique<NounPhrase>(pronoun ? object_pronoun(clause.doer())
                                                             : plain_phrase(pick_noun(kPerson)));
      if (clause.negated && !pronoun) make_definite(*clause.indirect);
      clause.object = std::make_unique<NounPhrase>(object_phrase(clause, may_deny));
      // "shows her dogs books" can be read in two ways; with a determiner it cannot.
      if (clause.object->determiner == Determiner::kNone) clause.object->determiner = Determiner::kThe;
    }
  }
  NounPhrase object_phrase(const Clause& clause, bool may_deny) {
    const Noun* noun = pick_noun(clause.verb->object);
    note_pair(*clause.verb, *noun);
    NounPhrase phrase = plain_phrase(noun, may_deny);
    if (clause.negated) make_definite(phrase);
    return phrase;
  }
  /// "nicht" beside "ein" would be "kein": with "not" objects are definite.
  void make_definite(NounPhrase& phrase) {
    if (phrase.determiner != Determiner::kPossessive && phrase.determiner != Determiner::kThis)
      phrase.determiner = Determiner::kThe;
  }

  void draw_place(Clause& clause) {
    const bool motion = clause.verb->frame == Frame::kMotion;
    if (!motion && !chance(clause.verb->frame == Frame::kIntransitive ? 40 : 13)) return;
    const bool gift =
        clause.verb->frame == Frame::kTransitive && clause.verb->object_case == Case::kAccusative;
    const auto fits = [&](const Preposition& preposition) {
      return motion || preposition.governs == Case::kDative || gift;
    };
    clause.place = prepositional(pick(motion ? words_.goal_prepositions : words_.place_prepositions, fits));
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
    if (!clausal) clause.dependent->subordinator = pick(words_.subordinators);
    fill(*clause.dependent, budget - 1);
  }

  void fill(Clause& clause, int budget) {
    ++nesting_;
    depth = std::max(depth, nesting_ - 1);
    if (clause.verb == nullptr && clause.predicate.adjective == nullptr) choose_verb(clause, budget);
    draw_tense(clause);
    draw_adverbs(clause);
    const bool may_deny = !clause.negated && clause.middle == nullptr;
    if (clause.role != Role::kRelativeSubject) {
      const Kinds kinds = clause.verb != nullptr ? clause.verb->subject : clause.predicate.adjective->kinds;
      clause.subject = subject_phrase(kinds, may_deny);
      if (clause.negated && clause.subject.determiner == Determiner::kEvery) make_definite(clause.subject);
      // Inside a relative clause the subject stays short: "the dog which the man who ... sees" helps nobody.
      if (clause.subject.noun != nullptr && clause.role != Role::kRelativeObject)
        extend(clause.subject, kinds, budget);
    }
    bool open = true;  // whether what follows the objects can only belong to this clause
    if (clause.verb != nullptr) {
      draw_objects(clause, budget, may_deny && clause.subject.determiner != Determiner::kNo);
      open = clause.object == nullptr || clause.object->relative == nullptr;
      if (open && clause.verb->frame != Frame::kClausal) draw_place(clause);
      if (!open && !clause.edge_first) clause.edge = nullptr;
    }
    draw_dependent(clause, budget, open);
    --nesting_;
  }

  const Lexicon& words_ = lexicon();
  Random& random_;
  uint64_t seed_;
  int nesting_ = 0;
};

}  // namespace

Drawn draw_sentence(Random& random, uint64_t seed, int depth) {
  Derivation derivation(random, seed);
  auto clause = derivation.main_clause(depth);
  return {std::move(clause), derivation.depth, derivation.held_out};
}

}  // namespace mh::grammar
