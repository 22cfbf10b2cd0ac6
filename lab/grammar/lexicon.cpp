#include "lab/grammar/lexicon.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
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
  for (const auto& [name, value] : names) {
    if (name == word) return value;
  }
  throw Error("the lexicon has an unknown word: " + std::string(word));
}

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    words.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

/// A line of a table. Cells at its end may be left out; they are empty.
class Row {
 public:
  Row(const nlohmann::json& cells, const std::map<std::string_view, Kinds>& kinds)
      : cells_(cells), kinds_(kinds) {}
  std::string_view operator[](size_t i) const {
    return i < cells_.size() ? std::string_view(cells_[i].get_ref<const std::string&>()) : "";
  }
  bool has(size_t i, std::string_view word) const { return (*this)[i] == word; }
  /// "animal thing", "any -time".
  Kinds kinds(size_t i) const {
    Kinds all = 0;
    for (std::string_view word : words_of((*this)[i])) {
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
    for (const std::string_view word : words_of((*this)[i])) all |= bit(value_of(word, kTenses));
    return all == 0 ? kAnyTense : all;
  }

 private:
  const nlohmann::json& cells_;
  const std::map<std::string_view, Kinds>& kinds_;
};

class Lexicon {
  nlohmann::json file_ = nlohmann::json::parse(mh_lexicon, mh_lexicon_end);  // whose texts the tables show
  std::map<std::string_view, Kinds> kinds_ = read_kinds();

  std::map<std::string_view, Kinds> read_kinds() const {
    std::map<std::string_view, Kinds> found{{"any", ~Kinds{0}}};
    Kinds next = kPerson;
    for (const auto& kind : file_.at("kinds")) {
      found[kind.at(0).get_ref<const std::string&>()] = next;
      next <<= 1;
    }
    for (const auto& group : file_.at("groups_of_kinds"))
      found[group.at(0).get_ref<const std::string&>()] = Row(group, found).kinds(1);
    return found;
  }
  template <class T, class Make>
  std::vector<T> table(const char* name, const Make& make) const {
    std::vector<T> rows;
    for (const auto& cells : file_.at(name)) rows.push_back(make(Row(cells, kinds_)));
    return rows;
  }
  std::vector<Adverb> adverbs(const char* name) const {
    return table<Adverb>(name, [](const Row& row) {
      return Adverb{row[0], row[1], row.tenses(2), !row.has(3, "not with be")};
    });
  }
  std::vector<Preposition> prepositions(const char* name) const {
    return table<Preposition>(name, [](const Row& row) {
      return Preposition{row[0], row[1], value_of(row[2], kCases), row.kinds(3)};
    });
  }
  std::vector<Pair> pairs(const char* name) const {
    return table<Pair>(name, [](const Row& row) { return Pair{row[0], row[1]}; });
  }

 public:
  std::vector<Noun> nouns = table<Noun>("nouns", [](const Row& row) {
    return Noun{row[0], row[1], row[2], row[3], value_of(row[4], kGenders), row.kinds(5)};
  });
  std::vector<Verb> verbs = table<Verb>("verbs", [](const Row& row) {
    Verb verb{row[0],        row[1],       row[2], row[3], row[4],
              row[5],        row[6],       row[7], row[8], value_of(row[9], kFrames),
              row.kinds(10), row.kinds(11)};
    if (row.has(12, "dative") || row.has(12, "dative sein")) verb.object_case = Case::kDative;
    verb.perfect_with_sein = row.has(12, "sein") || row.has(12, "dative sein");
    verb.german_first = row[13];
    return verb;
  });
  std::vector<Adjective> adjectives = table<Adjective>("adjectives", [](const Row& row) {
    return Adjective{row[0], row[1], value_of(row[2], kGroups), row.kinds(3)};
  });
  std::vector<Adverb> degree_adverbs = adverbs("degree_adverbs"), middle_adverbs = adverbs("middle_adverbs"),
                      edge_adverbs = adverbs("edge_adverbs");
  std::vector<Preposition> place_prepositions = prepositions("place_prepositions"),
                           goal_prepositions = prepositions("goal_prepositions"),
                           noun_prepositions = prepositions("noun_prepositions");
  std::vector<Pronoun> pronouns = table<Pronoun>("pronouns", [](const Row& row) {
    return Pronoun{row[0],
                   row[1],
                   row[2],
                   row[3],
                   row[4],
                   row[5],
                   row[6],
                   row.has(7, "first"),
                   value_of(row[8], kNumbers)};
  });
  std::vector<Pair> subordinators = pairs("subordinators"), numerals = pairs("numerals");
};

const Lexicon& lexicon() {
  static const Lexicon words;
  return words;
}

}  // namespace

std::span<const Noun> nouns() {
  return lexicon().nouns;
}
std::span<const Verb> verbs() {
  return lexicon().verbs;
}
std::span<const Adjective> adjectives() {
  return lexicon().adjectives;
}
std::span<const Adverb> degree_adverbs() {
  return lexicon().degree_adverbs;
}
std::span<const Adverb> middle_adverbs() {
  return lexicon().middle_adverbs;
}
std::span<const Adverb> edge_adverbs() {
  return lexicon().edge_adverbs;
}
std::span<const Preposition> place_prepositions() {
  return lexicon().place_prepositions;
}
std::span<const Preposition> goal_prepositions() {
  return lexicon().goal_prepositions;
}
std::span<const Preposition> noun_prepositions() {
  return lexicon().noun_prepositions;
}
std::span<const Pronoun> pronouns() {
  return lexicon().pronouns;
}
std::span<const Pair> subordinators() {
  return lexicon().subordinators;
}
std::span<const Pair> numerals() {
  return lexicon().numerals;
}

int lemma_count() {
  // the, a, this, every, no; who, which; be, do, have, will, can, must; not, that, but, and
  constexpr size_t kFunctionWords = 17;
  std::set<std::string_view> of_verbs;  // several rows are one lemma
  for (const Verb& verb : verbs()) of_verbs.insert(verb.english);
  return static_cast<int>(nouns().size() + of_verbs.size() + adjectives().size() + degree_adverbs().size() +
                          middle_adverbs().size() + edge_adverbs().size() + place_prepositions().size() +
                          goal_prepositions().size() + noun_prepositions().size() + 2 * pronouns().size() +
                          subordinators().size() + numerals().size() + kFunctionWords);
}

}  // namespace mh::grammar
