#include "lab/grammar/lexicon.h"

#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "multihead/base/embed.h"
#include "multihead/base/enum_names.h"
#include "multihead/base/error.h"

// MULTIHEAD_LEXICON is lexicon.json beside this file.
MH_EMBED(mh_lexicon, MULTIHEAD_LEXICON);

namespace mh::grammar {
namespace {

constexpr EnumNames<Gender> kGenders = {
    {"m", Gender::kMasculine}, {"f", Gender::kFeminine}, {"n", Gender::kNeuter}};
constexpr EnumNames<Number> kNumbers = {{"singular", Number::kSingular}, {"plural", Number::kPlural}};
constexpr EnumNames<Case> kCases = {{"accusative", Case::kAccusative}, {"dative", Case::kDative}};
constexpr EnumNames<Frame> kFrames = {{"intransitive", Frame::kIntransitive},
                                      {"motion", Frame::kMotion},
                                      {"transitive", Frame::kTransitive},
                                      {"ditransitive", Frame::kDitransitive},
                                      {"clausal", Frame::kClausal}};
constexpr EnumNames<Group> kGroups = {{"opinion", Group::kOpinion},
                                      {"character", Group::kCharacter},
                                      {"condition", Group::kCondition},
                                      {"size", Group::kSize},
                                      {"age", Group::kAge},
                                      {"colour", Group::kColour}};
constexpr EnumNames<Tense> kTenses = {{"present", Tense::kPresent}, {"past", Tense::kPast},
                                      {"perfect", Tense::kPerfect}, {"future", Tense::kFuture},
                                      {"can", Tense::kCan},         {"must", Tense::kMust}};

template <class E>
E value_of(std::string_view word, EnumNames<E> names) {
  if (const auto value = value_named(word, names)) return *value;
  throw Error("the lexicon has an unknown word: " + std::string(word));
}

std::vector<std::string> words_of(std::string_view text) {
  std::istringstream in{std::string(text)};
  return {std::istream_iterator<std::string>(in), {}};
}

/// A line of a table. Cells at its end may be left out; they are empty.
class Row {
 public:
  Row(const nlohmann::json& cells, const std::map<std::string_view, Kinds>& kinds)
      : cells_(cells), kinds_(kinds) {}
  std::string_view text(size_t i) const {
    return i < cells_.size() ? std::string_view(cells_[i].get_ref<const std::string&>()) : "";
  }
  /// "animal thing", "any -time".
  Kinds kinds(size_t i) const {
    Kinds all = 0;
    for (std::string_view word : words_of(text(i))) {
      const bool without = word.starts_with('-');
      if (without) word.remove_prefix(1);
      const auto found = kinds_.find(word);
      if (found == kinds_.end()) throw Error("the lexicon has an unknown kind: " + std::string(word));
      all = without ? all & ~found->second : all | found->second;
    }
    return all;
  }
  uint32_t tenses(size_t i) const {
    uint32_t all = 0;
    for (const std::string& word : words_of(text(i))) all |= bit(value_of(word, kTenses));
    return all == 0 ? kAnyTense : all;
  }

  void read(Noun& to) const {
    to = {text(0), text(1), text(2), text(3), value_of(text(4), kGenders), kinds(5)};
  }
  void read(Verb& to) const {
    to = {text(0),   text(1),  text(2), text(3), text(4),
          text(5),   text(6),  text(7), text(8), value_of(text(9), kFrames),
          kinds(10), kinds(11)};
    if (text(12).starts_with("dative")) to.object_case = Case::kDative;
    to.perfect_with_sein = text(12).ends_with("sein");
    to.german_first = text(13);
  }
  void read(Adjective& to) const { to = {text(0), text(1), value_of(text(2), kGroups), kinds(3)}; }
  void read(Adverb& to) const { to = {text(0), text(1), tenses(2), text(3) != "not with be"}; }
  void read(Preposition& to) const { to = {text(0), text(1), value_of(text(2), kCases), kinds(3)}; }
  void read(Pronoun& to) const {
    const bool first = text(7) == "first";
    to = {text(0), text(1), text(2), text(3), text(4), text(5), text(6), first, value_of(text(8), kNumbers)};
  }
  void read(Pair& to) const { to = {text(0), text(1)}; }

 private:
  const nlohmann::json& cells_;
  const std::map<std::string_view, Kinds>& kinds_;
};

/// All tables with their names in the file.
template <class Words, class Visitor>
void for_each_table(Words& words, Visitor visit) {
  visit("nouns", words.nouns);
  visit("verbs", words.verbs);
  visit("adjectives", words.adjectives);
  visit("degree_adverbs", words.degree_adverbs);
  visit("middle_adverbs", words.middle_adverbs);
  visit("edge_adverbs", words.edge_adverbs);
  visit("place_prepositions", words.place_prepositions);
  visit("goal_prepositions", words.goal_prepositions);
  visit("noun_prepositions", words.noun_prepositions);
  visit("pronouns", words.pronouns);
  visit("subordinators", words.subordinators);
  visit("numerals", words.numerals);
}

/// It shows the texts of the file.
Lexicon read_lexicon(const nlohmann::json& file) {
  std::map<std::string_view, Kinds> kinds{{"any", ~Kinds{0}}};
  Kinds next = kPerson;
  for (const auto& kind : file.at("kinds")) {
    kinds[kind.at(0).get_ref<const std::string&>()] = next;
    next <<= 1;
  }
  for (const auto& group : file.at("groups_of_kinds"))
    kinds[group.at(0).get_ref<const std::string&>()] = Row(group, kinds).kinds(1);
  Lexicon words;
  for_each_table(words, [&](const char* name, auto& table) {
    for (const auto& cells : file.at(name)) Row(cells, kinds).read(table.emplace_back());
  });
  return words;
}

}  // namespace

const Lexicon& lexicon() {
  static const auto file = nlohmann::json::parse(mh_lexicon, mh_lexicon_end);
  static const Lexicon words = read_lexicon(file);
  return words;
}

int lemma_count() {
  // the, a, this, every, no; who, which; be, do, have, will, can, must; not, that, but, and
  size_t count = 17;
  for_each_table(lexicon(), [&](const char*, const auto& table) { count += table.size(); });
  count += lexicon().pronouns.size();   // their possessives
  std::set<std::string_view> of_verbs;  // several rows are one lemma
  for (const Verb& verb : lexicon().verbs) of_verbs.insert(verb.english);
  return static_cast<int>(count - lexicon().verbs.size() + of_verbs.size());
}

}  // namespace mh::grammar
