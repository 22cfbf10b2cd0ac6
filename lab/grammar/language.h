// What the two languages share when a tree becomes a sentence: which words hang on which, and where they come from.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lab/grammar/linearise.h"

namespace mh::grammar {

/// Puts the words of a sentence in order; a word may be added before its head.
class Language {
 public:
  explicit Language(bool german) : german_(german) {}
  virtual ~Language() = default;
  /// To be called once.
  Side sentence(const Clause& main) {
    const Link root = link("root", -1);
    clause(main, root);
    if (ends_with_comma()) order_.pop_back();  // it closed a clause
    add(".", "PUNCT", "punct", root.id, {&main, kStop});
    std::vector<int> place(words_.size(), -1);  // by id
    for (size_t i = 0; i < order_.size(); ++i) place[order_[i]] = static_cast<int>(i);
    Side side;
    for (const size_t id : order_) {
      auto& [word, meaning] = words_[id];
      if (word.head >= 0) word.head = place[static_cast<size_t>(word.head)];
      side.words.push_back(std::move(word));
      side.meanings.push_back(meaning);
    }
    return side;
  }

 protected:
  /// The id of a word that may already be the head of others, though it stands in its place later; and its own head's.
  struct Link {
    int id;
    std::string_view relation;
    int head;
  };
  virtual void clause(const Clause& clause, Link link) = 0;
  // Forms of words:
  virtual std::string noun(const NounPhrase& phrase, Case grammatical_case) const = 0;
  virtual std::string_view pronoun(const Pronoun& pronoun, Case grammatical_case) const = 0;
  virtual std::string adjective(const Adjective& adjective, const NounPhrase& of, Case) const = 0;
  virtual std::string determiner(const NounPhrase& phrase, std::string_view lemma, Case) const = 0;
  virtual std::string relative_pronoun(const NounPhrase& antecedent, Case grammatical_case) const = 0;

  Link link(std::string_view relation, int head) {
    words_.emplace_back();
    return {static_cast<int>(words_.size()) - 1, relation, head};
  }
  void put(Link link, std::string_view form, std::string_view lemma, std::string_view upos, Meaning meaning) {
    order_.push_back(static_cast<size_t>(link.id));
    const auto text = [](std::string_view of) { return std::string(of); };
    words_[order_.back()] = {{text(form), text(lemma), text(upos), link.head, text(link.relation)}, meaning};
  }
  void add(std::string_view form, std::string_view lemma, std::string_view upos, std::string_view relation,
           int head, Meaning meaning) {
    put(link(relation, head), form, lemma, upos, meaning);
  }
  /// A word in the form of its lemma.
  void add(std::string_view word, std::string_view upos, std::string_view relation, int head,
           Meaning meaning) {
    add(word, word, upos, relation, head, meaning);
  }

  /// The word that begins a subordinate clause.
  void marker(const Clause& clause, int id) {
    const Meaning self{&clause, kMarker};
    if (clause.role == Role::kAdverbial) add(lemma(*clause.subordinator), "SCONJ", "mark", id, self);
    if (clause.role == Role::kComplement) add(german_ ? "dass" : "that", "SCONJ", "mark", id, self);
    if (!clause.relative()) return;
    const bool subject = clause.role == Role::kRelativeSubject;
    const char* english = (clause.antecedent->noun->kinds & kPerson) != 0 ? "who" : "which";
    add(relative_pronoun(*clause.antecedent, subject ? Case::kNominative : clause.verb->object_case),
        german_ ? "der" : english, "PRON", subject ? "nsubj" : "obj", id, self);
  }
  /// What a main clause begins with when it is not the subject. False: it is the subject.
  bool first_place(const Clause& clause, int id) {
    if (clause.dependent && clause.dependent_first) {
      dependent(*clause.dependent, id);
      comma(id, {clause.dependent.get(), kComma});
    } else if (clause.edge != nullptr && clause.edge_first) {
      adverb(clause.edge, id, {&clause, kEdge});
    } else if (clause.place && clause.place_first) {
      prepositional(*clause.place, "obl", id);
    } else {
      return false;
    }
    return true;
  }
  void subject(const Clause& clause, int id) {
    if (clause.role != Role::kRelativeSubject) phrase(clause.subject, Case::kNominative, link("nsubj", id));
  }
  void place(const Clause& clause, int id) {
    if (clause.place && !clause.place_first) prepositional(*clause.place, "obl", id);
  }
  void edge(const Clause& clause, int id) {
    if (!clause.edge_first) adverb(clause.edge, id, {&clause, kEdge});
  }
  void negation(const Clause& clause, int id) {
    if (clause.negated) add(german_ ? "nicht" : "not", "PART", "advmod", id, {&clause, kNegation});
  }
  void adverb(const Adverb* adverb, int head, Meaning meaning) {
    if (adverb != nullptr) add(lemma(*adverb), "ADV", "advmod", head, meaning);
  }
  void predicate(const Clause& clause, Link link) {
    modifier(clause.predicate, lemma(*clause.predicate.adjective), link, &clause, 0);
  }
  /// The clauses that follow a clause's own words.
  void last_place(const Clause& clause, int id) {
    if (clause.dependent && !clause.dependent_first) dependent(*clause.dependent, id);
    if (!clause.second) return;
    const Link second = link("conj", id);
    comma(second.id, {clause.second.get(), kComma});
    add(german_ ? "aber" : "but", "CCONJ", "cc", second.id, {clause.second.get(), kMarker});
    this->clause(*clause.second, second);
  }
  void phrase(const NounPhrase& phrase, Case grammatical_case, Link link) {
    const int id = link.id;
    const Meaning self{&phrase, kHead}, its_determiner{&phrase, kDeterminer};
    if (phrase.pronoun != nullptr) {
      put(link, pronoun(*phrase.pronoun, grammatical_case), lemma(*phrase.pronoun), "PRON", self);
      return;
    }
    if (phrase.determiner == Determiner::kNumeral) {
      add(lemma(*phrase.numeral), "NUM", "nummod", id, its_determiner);
    } else if (phrase.determiner != Determiner::kNone) {
      const bool whose = phrase.determiner == Determiner::kPossessive;
      const char* possessive = german_ ? "det:poss" : "nmod:poss";
      const std::string_view lemma = determiner_lemma(phrase);
      add(determiner(phrase, lemma, grammatical_case), lemma, whose && !german_ ? "PRON" : "DET",
          whose ? possessive : "det", id, its_determiner);
    }
    for (size_t i = 0; i < phrase.modifiers.size(); ++i) {
      const std::string form = adjective(*phrase.modifiers[i].adjective, phrase, grammatical_case);
      modifier(phrase.modifiers[i], form, this->link("amod", id), &phrase, static_cast<int>(i));
    }
    put(link, noun(phrase, grammatical_case), lemma(*phrase.noun), "NOUN", self);
    if (phrase.attribute) prepositional(*phrase.attribute, "nmod", id);
    if (phrase.relative) subordinate(*phrase.relative, this->link("acl:relcl", id));
    if (phrase.conjunct) {
      const Link second = this->link("conj", id);
      add(german_ ? "und" : "and", "CCONJ", "cc", second.id, {phrase.conjunct.get(), kMarker});
      this->phrase(*phrase.conjunct, grammatical_case, second);
    }
  }

 private:
  template <class Entry>
  std::string_view lemma(const Entry& of_lexicon) const {
    return german_ ? of_lexicon.german : of_lexicon.english;
  }
  /// REQUIRES: a determiner, no numeral.
  std::string_view determiner_lemma(const NounPhrase& phrase) const {
    constexpr Pair kLemmas[] = {{},
                                {"the", "der"},
                                {"a", "ein"},
                                {"this", "dies"},
                                {"every", "jed"},
                                {"no", "kein"}};  // by Determiner
    if (phrase.determiner != Determiner::kPossessive)
      return lemma(kLemmas[static_cast<size_t>(phrase.determiner)]);
    return german_ ? phrase.possessor->german_possessive : phrase.possessor->english_possessive;
  }
  void modifier(const NounPhrase::Modifier& modifier, std::string_view form, Link link, const void* node,
                int i) {
    adverb(modifier.degree, link.id, {node, kModifiers + 2 * i});
    put(link, form, lemma(*modifier.adjective), "ADJ", {node, kModifiers + 2 * i + 1});
  }
  void prepositional(const PrepositionalPhrase& place, std::string_view relation, int head) {
    const Link noun = link(relation, head);
    add(lemma(*place.preposition), "ADP", "case", noun.id, {&place, kHead});
    phrase(place.noun, place.preposition->governs, noun);
  }
  void dependent(const Clause& clause, int head) {
    subordinate(clause, link(clause.role == Role::kComplement ? "ccomp" : "advcl", head));
  }
  /// German puts it between commas.
  void subordinate(const Clause& clause, Link link) {
    if (german_) comma(link.id);
    this->clause(clause, link);
    if (german_) comma(link.id);
  }
  /// Adds a comma, unless the last word is one or there is no word yet.
  void comma(int head, Meaning meaning = {}) {
    if (order_.empty()) return;
    if (!ends_with_comma()) {
      add(",", "PUNCT", "punct", head, meaning);
    } else if (meaning.node != nullptr) {
      words_[order_.back()].second = meaning;
    }
  }
  bool ends_with_comma() const { return !order_.empty() && words_[order_.back()].first.form == ","; }

  const bool german_;
  std::vector<std::pair<Word, Meaning>> words_;  // by id; their heads are ids
  std::vector<size_t> order_;                    // ids
};

}  // namespace mh::grammar
