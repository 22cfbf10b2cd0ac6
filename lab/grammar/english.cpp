#include "lab/grammar/language.h"

namespace mh::grammar {
namespace {

/// "sees", "carries", "goes".
std::string third_person(std::string_view base) {
  const auto ends = [&](std::string_view end) { return base.ends_with(end); };
  const bool after_consonant =
      base.size() > 1 && std::string_view("aeiou").find(base[base.size() - 2]) == std::string_view::npos;
  if (ends("y") && after_consonant) return std::string(base.substr(0, base.size() - 1)) + "ies";
  const bool hisses = ends("s") || ends("sh") || ends("ch") || ends("x") || ends("z") || ends("o");
  return std::string(base) + (hisses ? "es" : "s");
}

/// "am", "is", "are", "was", "were".
std::string_view be(bool past, Agreement agreement) {
  if (agreement.plural()) return past ? "were" : "are";
  if (past) return "was";
  return agreement.first_person ? "am" : "is";
}

class English final : public Language {
 public:
  English() : Language(false) {}

 private:
  void clause(const Clause& clause, Link link) override {
    first_place(clause, link.id);
    marker(clause, link.id);
    subject(clause, link.id);
    if (clause.verb != nullptr) {
      verb(clause, link);
    } else {
      copula(clause, link);
    }
    place(clause, link.id);
    edge(clause, link.id);
    last_place(clause, link.id);
  }

  void before_verb(const Clause& clause, int id) {
    negation(clause, id);
    adverb(clause.middle, id, {&clause, kMiddle});
  }

  void verb(const Clause& clause, Link link) {
    const Verb& verb = *clause.verb;
    const int id = link.id;
    const Meaning aux{&clause, kAuxiliary}, self{&clause, kHead};
    const bool third = clause.doer().agreement().third_singular(), past = clause.tense == Tense::kPast;
    std::string form(verb.english);
    if (clause.negated && (past || clause.tense == Tense::kPresent)) {
      add(past ? "did" : third ? "does" : "do", "do", "AUX", "aux", id, self);
    } else if (past) {
      form = verb.past;
    } else if (clause.tense == Tense::kPresent) {
      if (third) form = third_person(verb.english);
    } else if (clause.tense == Tense::kPerfect) {
      add(third ? "has" : "have", "have", "AUX", "aux", id, aux);
      form = verb.participle;
    } else {
      const bool future = clause.tense == Tense::kFuture, can = clause.tense == Tense::kCan;
      add(future ? "will" : can ? "can" : "must", "AUX", "aux", id, aux);
    }
    before_verb(clause, id);
    put(link, form, verb.english, "VERB", self);
    if (clause.indirect) phrase(*clause.indirect, Case::kDative, this->link("iobj", id));
    // "pick up the ring", but "pick him up".
    const auto object = [&] { phrase(*clause.object, Case::kAccusative, this->link("obj", id)); };
    const bool pronoun = clause.object && clause.object->pronoun != nullptr;
    if (pronoun) object();
    if (!verb.particle.empty()) add(verb.particle, "ADP", "compound:prt", id, self);
    if (clause.object && !pronoun) object();
  }

  void copula(const Clause& clause, Link link) {
    const bool future = clause.tense == Tense::kFuture;
    if (future) {
      add("will", "AUX", "aux", link.id, {&clause, kAuxiliary});
      before_verb(clause, link.id);
    }
    const std::string_view form = future ? "be" : be(clause.tense == Tense::kPast, clause.doer().agreement());
    add(form, "be", "AUX", "cop", link.id, {&clause, kHead});
    if (!future) before_verb(clause, link.id);
    predicate(clause, link);
  }

  std::string noun(const NounPhrase& phrase, Case) const override {
    return std::string(phrase.number == Number::kPlural ? phrase.noun->english_plural : phrase.noun->english);
  }
  std::string_view pronoun(const Pronoun& pronoun, Case grammatical_case) const override {
    return grammatical_case == Case::kNominative ? pronoun.english : pronoun.english_object;
  }
  std::string adjective(const Adjective& adjective, const NounPhrase&, Case) const override {
    return std::string(adjective.english);
  }
  std::string determiner(const NounPhrase& phrase, std::string_view lemma, Case) const override {
    if (phrase.determiner == Determiner::kThis && phrase.number == Number::kPlural) return "these";
    if (phrase.determiner != Determiner::kA) return std::string(lemma);
    std::string_view next = phrase.noun->english;  // its first letter tells "a" from "an"
    if (!phrase.modifiers.empty()) {
      const auto& [degree, adjective] = phrase.modifiers[0];
      next = degree != nullptr ? degree->english : adjective->english;
    }
    return next.find_first_of("aeiou") == 0 ? "an" : "a";
  }
  std::string relative_pronoun(const NounPhrase& antecedent, Case grammatical_case) const override {
    if ((antecedent.noun->kinds & kPerson) == 0) return "which";
    return grammatical_case == Case::kNominative ? "who" : "whom";
  }
};

}  // namespace

Side english(const Clause& main) {
  return English().sentence(main);
}

}  // namespace mh::grammar
