#include <string>

#include "lab/grammar/english_morphology.h"
#include "lab/grammar/linearise.h"

namespace mh::grammar {
namespace {

class English {
 public:
  explicit English(SentenceBuilder& out) : out_(out) {}

  void clause(const Clause& clause, int id, std::string_view relation, int head) {
    opening(clause, id);
    Agreement agreement{clause.doer().first_person(), clause.doer().agreement()};
    if (clause.role != Role::kRelativeSubject) phrase(clause.subject, Case::kNominative, "nsubj", id);
    if (clause.verb != nullptr) {
      verb(clause, id, relation, head, agreement);
    } else {
      copula(clause, id, relation, head, agreement);
    }
    if (clause.place && !clause.place_first) prepositional(*clause.place, "obl", id);
    if (clause.edge != nullptr && !clause.edge_first) edge(clause, id);
    if (clause.dependent && !clause.dependent_first) dependent(*clause.dependent, id);
    if (clause.second) {
      const int second = out_.reserve();
      out_.comma(second, {clause.second.get(), kComma});
      out_.add("but", "but", "CCONJ", "cc", second, {clause.second.get(), kMarker});
      this->clause(*clause.second, second, "conj", id);
    }
  }

 private:
  void opening(const Clause& clause, int id) {
    if (clause.dependent && clause.dependent_first) {
      dependent(*clause.dependent, id);
      out_.comma(id, {clause.dependent.get(), kComma});
    }
    if (clause.role == Role::kAdverbial) marker(clause, clause.subordinator->english, id);
    if (clause.role == Role::kComplement) marker(clause, "that", id);
    if (clause.role == Role::kRelativeSubject || clause.role == Role::kRelativeObject) {
      const bool subject = clause.role == Role::kRelativeSubject;
      const bool person = (clause.antecedent->noun->kinds & kPerson) != 0;
      const char* form = !person ? "which" : subject ? "who" : "whom";
      out_.add(form, person ? "who" : "which", "PRON", subject ? "nsubj" : "obj", id, {&clause, kMarker});
    }
    if (clause.edge != nullptr && clause.edge_first) edge(clause, id);
    if (clause.place && clause.place_first) prepositional(*clause.place, "obl", id);
  }
  void marker(const Clause& clause, std::string_view form, int id) {
    out_.add(std::string(form), form, "SCONJ", "mark", id, {&clause, kMarker});
  }
  void dependent(const Clause& dependent, int head) {
    clause(dependent, out_.reserve(), dependent.role == Role::kComplement ? "ccomp" : "advcl", head);
  }
  void edge(const Clause& clause, int id) {
    out_.add(std::string(clause.edge->english), clause.edge->english, "ADV", "advmod", id, {&clause, kEdge});
  }
  void before_verb(const Clause& clause, int id) {
    if (clause.negated) out_.add("not", "not", "PART", "advmod", id, {&clause, kNegation});
    if (clause.middle != nullptr) {
      out_.add(std::string(clause.middle->english), clause.middle->english, "ADV", "advmod", id,
               {&clause, kMiddle});
    }
  }
  void auxiliary(std::string form, std::string_view lemma, int id, Meaning meaning) {
    out_.add(std::move(form), lemma, "AUX", "aux", id, meaning);
  }

  void verb(const Clause& clause, int id, std::string_view relation, int head, Agreement agreement) {
    const Verb& verb = *clause.verb;
    const Meaning aux{&clause, kAuxiliary}, self{&clause, kHead};
    const bool third = agreement.third_singular();
    std::string form(verb.english);
    switch (clause.tense) {
      case Tense::kPresent:
        if (clause.negated) {
          auxiliary(third ? "does" : "do", "do", id, self);
        } else if (third) {
          form = english_third_person(verb.english);
        }
        break;
      case Tense::kPast:
        if (clause.negated) {
          auxiliary("did", "do", id, self);
        } else {
          form = verb.past;
        }
        break;
      case Tense::kPerfect:
        auxiliary(third ? "has" : "have", "have", id, aux);
        form = verb.participle;
        break;
      case Tense::kFuture:
        auxiliary("will", "will", id, aux);
        break;
      case Tense::kCan:
        auxiliary("can", "can", id, aux);
        break;
      case Tense::kMust:
        auxiliary("must", "must", id, aux);
        break;
    }
    before_verb(clause, id);
    out_.put(id, form, verb.english, "VERB", relation, head, self);
    // "pick up the ring", but "pick him up".
    if (clause.indirect) phrase(*clause.indirect, Case::kAccusative, "iobj", id);
    const bool pronoun = clause.object && clause.object->pronoun != nullptr;
    if (pronoun) phrase(*clause.object, Case::kAccusative, "obj", id);
    if (!verb.particle.empty()) {
      out_.add(std::string(verb.particle), verb.particle, "ADP", "compound:prt", id, self);
    }
    if (clause.object && !pronoun) phrase(*clause.object, Case::kAccusative, "obj", id);
  }

  void copula(const Clause& clause, int id, std::string_view relation, int head, Agreement agreement) {
    const Meaning self{&clause, kHead};
    if (clause.tense == Tense::kFuture) {
      auxiliary("will", "will", id, {&clause, kAuxiliary});
      before_verb(clause, id);
      out_.add("be", "be", "AUX", "cop", id, self);
    } else {
      out_.add(english_be(clause.tense == Tense::kPast, agreement), "be", "AUX", "cop", id, self);
      before_verb(clause, id);
    }
    adjective(clause.predicate, id, relation, head, &clause, 0);
  }

  void adjective(const NounPhrase::Modifier& modifier, int id, std::string_view relation, int head,
                 const void* node, int i) {
    if (modifier.degree != nullptr) {
      out_.add(std::string(modifier.degree->english), modifier.degree->english, "ADV", "advmod", id,
               {node, kModifiers + 2 * i});
    }
    out_.put(id, std::string(modifier.adjective->english), modifier.adjective->english, "ADJ", relation, head,
             {node, kModifiers + 2 * i + 1});
  }

  void prepositional(const PrepositionalPhrase& place, std::string_view relation, int head) {
    const int id = out_.reserve();
    out_.add(std::string(place.preposition->english), place.preposition->english, "ADP", "case", id,
             {&place, kHead});
    phrase(place.noun, Case::kAccusative, relation, head, id);
  }

  void determiner(const NounPhrase& phrase, int id) {
    const Meaning self{&phrase, kDeterminer};
    const bool plural = phrase.number == Number::kPlural;
    switch (phrase.determiner) {
      case Determiner::kNone:
        break;
      case Determiner::kThe:
        out_.add("the", "the", "DET", "det", id, self);
        break;
      case Determiner::kA: {
        const bool bare = phrase.modifiers.empty();
        const auto* degree = bare ? nullptr : phrase.modifiers[0].degree;
        const std::string_view next = bare                ? phrase.noun->english
                                      : degree != nullptr ? degree->english
                                                          : phrase.modifiers[0].adjective->english;
        out_.add(english_indefinite(next), "a", "DET", "det", id, self);
        break;
      }
      case Determiner::kThis:
        out_.add(plural ? "these" : "this", "this", "DET", "det", id, self);
        break;
      case Determiner::kEvery:
        out_.add("every", "every", "DET", "det", id, self);
        break;
      case Determiner::kNo:
        out_.add("no", "no", "DET", "det", id, self);
        break;
      case Determiner::kPossessive:
        out_.add(std::string(phrase.possessor->english_possessive), phrase.possessor->english_possessive,
                 "PRON", "nmod:poss", id, self);
        break;
      case Determiner::kNumeral:
        out_.add(std::string(phrase.numeral->english), phrase.numeral->english, "NUM", "nummod", id, self);
        break;
    }
  }

  void phrase(const NounPhrase& phrase, Case grammatical_case, std::string_view relation, int head,
              int id = -1) {
    if (id < 0) id = out_.reserve();
    if (phrase.pronoun != nullptr) {
      const Pronoun& pronoun = *phrase.pronoun;
      const bool subject = grammatical_case == Case::kNominative;
      out_.put(id, std::string(subject ? pronoun.english : pronoun.english_object), pronoun.english, "PRON",
               relation, head, {&phrase, kHead});
      return;
    }
    determiner(phrase, id);
    for (size_t i = 0; i < phrase.modifiers.size(); ++i) {
      adjective(phrase.modifiers[i], out_.reserve(), "amod", id, &phrase, static_cast<int>(i));
    }
    const Noun& noun = *phrase.noun;
    out_.put(id, std::string(phrase.number == Number::kPlural ? noun.english_plural : noun.english),
             noun.english, "NOUN", relation, head, {&phrase, kHead});
    if (phrase.attribute) prepositional(*phrase.attribute, "nmod", id);
    if (phrase.relative) clause(*phrase.relative, out_.reserve(), "acl:relcl", id);
    if (phrase.conjunct) {
      const int second = out_.reserve();
      out_.add("and", "and", "CCONJ", "cc", second, {phrase.conjunct.get(), kMarker});
      this->phrase(*phrase.conjunct, grammatical_case, "conj", id, second);
    }
  }

  SentenceBuilder& out_;
};

}  // namespace

void english(const Clause& main, SentenceBuilder& out) {
  const int root = out.reserve();
  English(out).clause(main, root, "root", -1);
  out.full_stop(root, {&main, kStop});
}

}  // namespace mh::grammar
