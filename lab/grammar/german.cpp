#include <string>

#include "lab/grammar/german_morphology.h"
#include "lab/grammar/linearise.h"

namespace mh::grammar {
namespace {

class German {
 public:
  explicit German(SentenceBuilder& out) : out_(out) {}

  void clause(const Clause& clause, int id, std::string_view relation, int head) {
    opening(clause, id);
    const Agreement agreement{clause.doer().first_person(), clause.doer().agreement()};
    const bool has_subject = clause.role != Role::kRelativeSubject;
    if (clause.subordinate()) {
      if (has_subject) phrase(clause.subject, Case::kNominative, "nsubj", id);
      middle_field(clause, id);
      verbs_at_the_end(clause, id, relation, head, agreement);
    } else {
      const bool inverted = first_place(clause, id);
      if (!inverted) phrase(clause.subject, Case::kNominative, "nsubj", id);
      finite_verb(clause, id, relation, head, agreement);
      if (inverted) phrase(clause.subject, Case::kNominative, "nsubj", id);
      middle_field(clause, id);
      right_bracket(clause, id, relation, head);
    }
    if (clause.dependent && !clause.dependent_first) dependent(*clause.dependent, id);
    if (clause.second) {
      const int second = out_.reserve();
      out_.comma(second, {clause.second.get(), kComma});
      out_.add("aber", "aber", "CCONJ", "cc", second, {clause.second.get(), kMarker});
      this->clause(*clause.second, second, "conj", id);
    }
  }

 private:
  static bool simple(const Clause& clause) {
    return clause.tense == Tense::kPresent || clause.tense == Tense::kPast;
  }
  static std::string lemma(const Verb& verb) { return std::string(verb.prefix).append(verb.german); }
  static GermanAuxiliary auxiliary_of(const Clause& clause) {
    switch (clause.tense) {
      case Tense::kPerfect:
        return clause.verb->perfect_with_sein ? GermanAuxiliary::kSein : GermanAuxiliary::kHaben;
      case Tense::kCan:
        return GermanAuxiliary::kOennen;
      case Tense::kMust:
        return GermanAuxiliary::kMuessen;
      default:
        return GermanAuxiliary::kWerden;
    }
  }

  void opening(const Clause& clause, int id) {
    const Meaning self{&clause, kMarker};
    if (clause.role == Role::kAdverbial) {
      out_.add(std::string(clause.subordinator->german), clause.subordinator->german, "SCONJ", "mark", id,
               self);
    } else if (clause.role == Role::kComplement) {
      out_.add("dass", "dass", "SCONJ", "mark", id, self);
    } else if (clause.role == Role::kRelativeSubject || clause.role == Role::kRelativeObject) {
      const bool subject = clause.role == Role::kRelativeSubject;
      const Concord concord{clause.antecedent->noun->gender, clause.antecedent->number,
                            subject ? Case::kNominative : clause.verb->object_case};
      out_.add(german_relative_pronoun(concord), "der", "PRON", subject ? "nsubj" : "obj", id, self);
    }
  }

  /// What stands before the verb of a main clause when it is not the subject. False: it is the subject.
  bool first_place(const Clause& clause, int id) {
    if (clause.dependent && clause.dependent_first) {
      dependent(*clause.dependent, id);
      out_.comma(id, {clause.dependent.get(), kComma});
      return true;
    }
    if (clause.edge != nullptr && clause.edge_first) {
      edge(clause, id);
      return true;
    }
    if (clause.place && clause.place_first) {
      prepositional(*clause.place, "obl", id);
      return true;
    }
    return false;
  }

  void dependent(const Clause& dependent, int head) {
    const int id = out_.reserve();
    out_.comma(id);
    clause(dependent, id, dependent.role == Role::kComplement ? "ccomp" : "advcl", head);
    out_.comma(id);
  }
  void edge(const Clause& clause, int id) {
    out_.add(std::string(clause.edge->german), clause.edge->german, "ADV", "advmod", id, {&clause, kEdge});
  }
  void auxiliary(const Clause& clause, int id, Agreement agreement) {
    const GermanAuxiliary aux = auxiliary_of(clause);
    out_.add(german_auxiliary(aux, false, agreement), german_auxiliary_lemma(aux), "AUX", "aux", id,
             {&clause, kAuxiliary});
  }
  void copula(const Clause& clause, int id, Agreement agreement) {
    out_.add(german_auxiliary(GermanAuxiliary::kSein, clause.tense == Tense::kPast, agreement), "sein", "AUX",
             "cop", id, {&clause, kHead});
  }

  void finite_verb(const Clause& clause, int id, std::string_view relation, int head, Agreement agreement) {
    if (!simple(clause)) {
      auxiliary(clause, id, agreement);
    } else if (clause.verb == nullptr) {
      copula(clause, id, agreement);
    } else {
      out_.put(id, german_finite(*clause.verb, clause.tense == Tense::kPast, agreement), lemma(*clause.verb),
               "VERB", relation, head, {&clause, kHead});
    }
  }

  /// Infinitive or participle, or what the predicate says.
  void non_finite(const Clause& clause, int id, std::string_view relation, int head) {
    if (clause.verb == nullptr) {
      adjective(clause.predicate, std::string(clause.predicate.adjective->german), id, relation, head,
                &clause, 0);
      if (!simple(clause)) out_.add("sein", "sein", "AUX", "cop", id, {&clause, kHead});
    } else if (!simple(clause)) {
      const bool perfect = clause.tense == Tense::kPerfect;
      out_.put(id, perfect ? std::string(clause.verb->german_participle) : lemma(*clause.verb),
               lemma(*clause.verb), "VERB", relation, head, {&clause, kHead});
    }
  }

  void right_bracket(const Clause& clause, int id, std::string_view relation, int head) {
    non_finite(clause, id, relation, head);
    if (clause.verb != nullptr && simple(clause) && !clause.verb->prefix.empty()) {
      out_.add(std::string(clause.verb->prefix), clause.verb->prefix, "ADP", "compound:prt", id,
               {&clause, kHead});
    }
  }

  void verbs_at_the_end(const Clause& clause, int id, std::string_view relation, int head,
                        Agreement agreement) {
    non_finite(clause, id, relation, head);
    if (!simple(clause)) {
      auxiliary(clause, id, agreement);
    } else if (clause.verb == nullptr) {
      copula(clause, id, agreement);
    } else {
      const Verb& verb = *clause.verb;
      std::string form(verb.prefix);
      form += german_finite(verb, clause.tense == Tense::kPast, agreement);
      out_.put(id, form, lemma(verb), "VERB", relation, head, {&clause, kHead});
    }
  }

  void object(const NounPhrase& phrase, Case grammatical_case, std::string_view relation, int id,
              bool pronouns) {
    if ((phrase.pronoun != nullptr) == pronouns) this->phrase(phrase, grammatical_case, relation, id);
  }

  void middle_field(const Clause& clause, int id) {
    const Case object_case = clause.verb != nullptr ? clause.verb->object_case : Case::kAccusative;
    const auto objects = [&](bool pronouns) {
      if (clause.indirect) object(*clause.indirect, Case::kDative, "iobj", id, pronouns);
      if (clause.object) object(*clause.object, object_case, "obj", id, pronouns);
    };
    objects(true);
    if (clause.edge != nullptr && (!clause.edge_first || clause.subordinate())) edge(clause, id);
    if (clause.middle != nullptr) {
      out_.add(std::string(clause.middle->german), clause.middle->german, "ADV", "advmod", id,
               {&clause, kMiddle});
    }
    objects(false);
    if (clause.negated) out_.add("nicht", "nicht", "PART", "advmod", id, {&clause, kNegation});
    if (clause.place && !clause.place_first) prepositional(*clause.place, "obl", id);
  }

  void adjective(const NounPhrase::Modifier& modifier, std::string form, int id, std::string_view relation,
                 int head, const void* node, int i) {
    if (modifier.degree != nullptr) {
      out_.add(std::string(modifier.degree->german), modifier.degree->german, "ADV", "advmod", id,
               {node, kModifiers + 2 * i});
    }
    out_.put(id, std::move(form), modifier.adjective->german, "ADJ", relation, head,
             {node, kModifiers + 2 * i + 1});
  }

  void prepositional(const PrepositionalPhrase& place, std::string_view relation, int head) {
    const int id = out_.reserve();
    const Preposition& preposition = *place.preposition;
    out_.add(std::string(preposition.german), preposition.german, "ADP", "case", id, {&place, kHead});
    phrase(place.noun, preposition.governs, relation, head, id);
  }

  void pronoun(const NounPhrase& phrase, Case grammatical_case, std::string_view relation, int head, int id) {
    const Pronoun& pronoun = *phrase.pronoun;
    const std::string_view form = grammatical_case == Case::kNominative   ? pronoun.german
                                  : grammatical_case == Case::kAccusative ? pronoun.german_accusative
                                                                          : pronoun.german_dative;
    out_.put(id, std::string(form), pronoun.german, "PRON", relation, head, {&phrase, kHead});
  }

  void phrase(const NounPhrase& phrase, Case grammatical_case, std::string_view relation, int head,
              int id = -1) {
    if (id < 0) id = out_.reserve();
    if (phrase.pronoun != nullptr) {
      pronoun(phrase, grammatical_case, relation, head, id);
      return;
    }
    const Concord concord{phrase.noun->gender, phrase.number, grammatical_case};
    const Meaning determiner{&phrase, kDeterminer};
    if (phrase.determiner == Determiner::kNumeral) {
      out_.add(std::string(phrase.numeral->german), phrase.numeral->german, "NUM", "nummod", id, determiner);
    } else if (phrase.determiner != Determiner::kNone) {
      const bool possessive = phrase.determiner == Determiner::kPossessive;
      out_.add(german_determiner(phrase, concord), german_determiner_lemma(phrase), "DET",
               possessive ? "det:poss" : "det", id, determiner);
    }
    for (size_t i = 0; i < phrase.modifiers.size(); ++i) {
      adjective(phrase.modifiers[i],
                german_adjective(phrase.modifiers[i].adjective->german, phrase.determiner, concord),
                out_.reserve(), "amod", id, &phrase, static_cast<int>(i));
    }
    out_.put(id, german_noun(*phrase.noun, phrase.number, grammatical_case), phrase.noun->german, "NOUN",
             relation, head, {&phrase, kHead});
    if (phrase.attribute) prepositional(*phrase.attribute, "nmod", id);
    if (phrase.relative) {
      const int verb = out_.reserve();
      out_.comma(verb);
      clause(*phrase.relative, verb, "acl:relcl", id);
      out_.comma(verb);
    }
    if (phrase.conjunct) {
      const int second = out_.reserve();
      out_.add("und", "und", "CCONJ", "cc", second, {phrase.conjunct.get(), kMarker});
      this->phrase(*phrase.conjunct, grammatical_case, "conj", id, second);
    }
  }

  SentenceBuilder& out_;
};

}  // namespace

void german(const Clause& main, SentenceBuilder& out) {
  const int root = out.reserve();
  German(out).clause(main, root, "root", -1);
  out.full_stop(root, {&main, kStop});
}

}  // namespace mh::grammar
