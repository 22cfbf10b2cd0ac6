#include "lab/studies/micro_language.h"

#include <array>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "multihead/base/random.h"

namespace mh {
namespace {

enum Gender { kMasculine, kFeminine, kNeuter };
using Pair = std::array<const char*, 2>;  // English, German
struct Noun {
  Pair forms;
  Gender gender;
};

constexpr Noun kNouns[] = {
    {{"man", "Mann"}, kMasculine},    {{"dog", "Hund"}, kMasculine},     {{"tree", "Baum"}, kMasculine},
    {{"king", "König"}, kMasculine},  {{"woman", "Frau"}, kFeminine},    {{"cat", "Katze"}, kFeminine},
    {{"flower", "Blume"}, kFeminine}, {{"queen", "Königin"}, kFeminine}, {{"child", "Kind"}, kNeuter},
    {{"horse", "Pferd"}, kNeuter},    {{"house", "Haus"}, kNeuter},      {{"girl", "Mädchen"}, kNeuter}};
constexpr Pair kVerbs[] = {{"sees", "sieht"},  {"finds", "findet"}, {"seeks", "sucht"},
                           {"loves", "liebt"}, {"knows", "kennt"},  {"hears", "hört"}};
constexpr Pair kAdjectives[] = {
    {"old", "alt"}, {"young", "jung"}, {"small", "klein"}, {"beautiful", "schön"}};  // endings follow
constexpr Pair kAdverbs[] = {{"today", "heute"}, {"often", "oft"}, {"rarely", "selten"}};
constexpr Pair kFrames[] = {{"I think that", "ich denke , dass"}, {"she says that", "sie sagt , dass"}};

// [indefinite][accusative][gender]
constexpr const char* kArticles[2][2][3] = {{{"der", "die", "das"}, {"den", "die", "das"}},
                                            {{"ein", "eine", "ein"}, {"einen", "eine", "ein"}}};
constexpr const char* kEndings[2][2][3] = {{{"e", "e", "e"}, {"en", "e", "e"}},
                                           {{"er", "e", "es"}, {"en", "e", "es"}}};

struct Phrase {
  const Noun* noun;
  const Pair* adjective;  // or null
  bool indefinite;
};

/// One side as it grows; heads are numbers in it.
struct Side {
  bool german;
  std::vector<Word> words = {};
  int verb = -1;

  void add(const std::string& form, const char* upos, const char* relation, int head = -1) {
    words.push_back({.form = form, .lemma = form, .upos = upos, .head = head, .relation = relation});
  }
  void add(const Pair& forms, const char* upos, const char* relation) { add(forms[german], upos, relation); }
  void add_verb(const Pair& forms) {
    verb = static_cast<int>(words.size());
    add(forms, "VERB", "root");
  }
  void add_frame(const Pair& texts) {
    std::istringstream text(texts[german]);
    for (std::string word; text >> word;)
      add(word, word == "," ? "PUNCT" : "X", word == "," ? "punct" : "mark");
  }
  void add_phrase(const Phrase& p, bool accusative, const char* relation) {
    const int noun = static_cast<int>(words.size()) + (p.adjective ? 2 : 1);
    const Gender gender = p.noun->gender;
    const bool an = p.adjective && (*p.adjective)[0][0] == 'o';
    add(german          ? kArticles[p.indefinite][accusative][gender]
        : !p.indefinite ? "the"
        : an            ? "an"
                        : "a",
        "DET", "det", noun);
    if (p.adjective) {
      const char* ending = german ? kEndings[p.indefinite][accusative][gender] : "";
      add((*p.adjective)[german] + std::string(ending), "ADJ", "amod", noun);
    }
    add(p.noun->forms, "NOUN", relation);
  }
};

GrammarSentence make_sentence(Random& random) {
  const auto one_of = [&random](const auto& list) {
    return &list[random.below(static_cast<uint32_t>(std::size(list)))];
  };
  const auto phrase = [&] {
    return Phrase{one_of(kNouns), random.below(2) ? one_of(kAdjectives) : nullptr, random.below(2) == 1};
  };
  const Phrase subject = phrase(), object = phrase();
  const Pair* verb = one_of(kVerbs);
  const Pair* adverb = random.below(2) ? one_of(kAdverbs) : nullptr;
  const Pair* frame = random.below(3) == 0 ? one_of(kFrames) : nullptr;
  GrammarSentence sentence;
  for (const bool german : {false, true}) {
    Side side{german};
    if (frame) side.add_frame(*frame);
    const bool last = german && frame, inverted = german && adverb && !frame;
    if (adverb && !last) side.add(*adverb, "ADV", "advmod");
    if (inverted) side.add_verb(*verb);
    side.add_phrase(subject, false, "nsubj");
    if (!inverted && !last) side.add_verb(*verb);
    if (adverb && last) side.add(*adverb, "ADV", "advmod");
    side.add_phrase(object, true, "obj");
    if (last) side.add_verb(*verb);
    side.add(".", "PUNCT", "punct");
    for (Word& word : side.words) {
      if (word.head < 0 && word.upos != "VERB") word.head = side.verb;
    }
    (german ? sentence.target : sentence.source) = std::move(side.words);
  }
  return sentence;
}

}  // namespace

GrammarCorpus make_micro_corpus(uint64_t seed, int64_t train, int64_t valid, int64_t test) {
  Random random(seed, 99);
  GrammarCorpus corpus;
  std::set<std::string> known;
  const std::pair<std::vector<GrammarSentence>*, int64_t> parts[] = {
      {&corpus.train, train}, {&corpus.valid, valid}, {&corpus.test, test}};
  for (const auto& [part, size] : parts) {
    while (static_cast<int64_t>(part->size()) < size) {
      GrammarSentence sentence = make_sentence(random);
      if (known.insert(text_of(sentence.source)).second) part->push_back(std::move(sentence));
    }
  }
  return corpus;
}

}  // namespace mh
