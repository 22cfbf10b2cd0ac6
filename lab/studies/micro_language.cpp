#include "lab/studies/micro_language.h"

#include <array>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "multihead/base/random.h"

namespace mh {
namespace {

enum Gender { kMasculine, kFeminine, kNeuter };
struct Noun {
  const char *english, *german;
  Gender gender;
};
using Pair = std::pair<const char*, const char*>;

constexpr Noun kNouns[] = {
    {"man", "Mann", kMasculine},    {"dog", "Hund", kMasculine},     {"tree", "Baum", kMasculine},
    {"king", "König", kMasculine},  {"woman", "Frau", kFeminine},    {"cat", "Katze", kFeminine},
    {"flower", "Blume", kFeminine}, {"queen", "Königin", kFeminine}, {"child", "Kind", kNeuter},
    {"horse", "Pferd", kNeuter},    {"house", "Haus", kNeuter},      {"girl", "Mädchen", kNeuter}};
constexpr Pair kVerbs[] = {{"sees", "sieht"},  {"finds", "findet"}, {"seeks", "sucht"},
                           {"loves", "liebt"}, {"knows", "kennt"},  {"hears", "hört"}};
constexpr Pair kAdjectives[] = {
    {"old", "alt"}, {"young", "jung"}, {"small", "klein"}, {"beautiful", "schön"}};  // endings follow
constexpr Pair kAdverbs[] = {{"today", "heute"}, {"often", "oft"}, {"rarely", "selten"}};
constexpr const char* kFrames[][2] = {{"I think that", "ich denke , dass"},
                                      {"she says that", "sie sagt , dass"}};

// [indefinite][accusative][gender]
constexpr const char* kArticles[2][2][3] = {{{"der", "die", "das"}, {"den", "die", "das"}},
                                            {{"ein", "eine", "ein"}, {"einen", "eine", "ein"}}};
constexpr const char* kEndings[2][2][3] = {{{"e", "e", "e"}, {"en", "e", "e"}},
                                           {{"er", "e", "es"}, {"en", "e", "es"}}};

/// One side as it grows; heads are numbers in it.
struct Side {
  std::vector<Word> words;
  int add(std::string form, const char* upos, const char* relation, int head = -1) {
    Word word;
    word.lemma = form;
    word.form = std::move(form);
    word.upos = upos;
    word.relation = relation;
    word.head = head;
    words.push_back(std::move(word));
    return static_cast<int>(words.size()) - 1;
  }
};

struct Phrase {
  const Noun* noun;
  const Pair* adjective;  // or null
  bool indefinite;
};

/// Returns the noun's number.
int add_phrase(Side& side, const Phrase& p, bool german, bool accusative, const char* relation) {
  const int first = static_cast<int>(side.words.size()), noun = first + (p.adjective ? 2 : 1);
  const Gender gender = p.noun->gender;
  const bool an = !german && p.indefinite && p.adjective && p.adjective->first[0] == 'o';
  side.add(german         ? kArticles[p.indefinite][accusative][gender]
           : p.indefinite ? (an ? "an" : "a")
                          : "the",
           "DET", "det", noun);
  if (p.adjective) {
    side.add(german ? p.adjective->second + std::string(kEndings[p.indefinite][accusative][gender])
                    : p.adjective->first,
             "ADJ", "amod", noun);
  }
  return side.add(german ? p.noun->german : p.noun->english, "NOUN", relation);
}

void add_frame(Side& side, const std::string& text) {
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(' ', at), text.size());
    const std::string word = text.substr(at, end - at);
    side.add(word, word == "," ? "PUNCT" : "X", word == "," ? "punct" : "mark");
    at = end + 1;
  }
}

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
  const char* const* frame = random.below(3) == 0 ? *one_of(kFrames) : nullptr;
  GrammarSentence sentence;
  for (const bool german : {false, true}) {
    Side side;
    if (frame) add_frame(side, frame[german]);
    const bool last = german && frame, inverted = german && adverb && !frame;
    int adverb_at = -1, verb_at = -1;
    if (adverb && !last) adverb_at = side.add(german ? adverb->second : adverb->first, "ADV", "advmod");
    if (inverted) verb_at = side.add(verb->second, "VERB", "root");
    const int subject_at = add_phrase(side, subject, german, false, "nsubj");
    if (!inverted && !last) verb_at = side.add(german ? verb->second : verb->first, "VERB", "root");
    if (adverb && last) adverb_at = side.add(adverb->second, "ADV", "advmod");
    const int object_at = add_phrase(side, object, german, true, "obj");
    if (last) verb_at = side.add(verb->second, "VERB", "root");
    side.add(".", "PUNCT", "punct", verb_at);
    side.words[static_cast<size_t>(subject_at)].head = verb_at;
    side.words[static_cast<size_t>(object_at)].head = verb_at;
    if (adverb_at >= 0) side.words[static_cast<size_t>(adverb_at)].head = verb_at;
    for (Word& word : side.words) {
      if (word.relation == "mark" || (word.relation == "punct" && word.form == ",")) word.head = verb_at;
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
      std::string key;
      for (const Word& word : sentence.source) key += word.form + " ";
      if (known.insert(key).second) part->push_back(std::move(sentence));
    }
  }
  return corpus;
}

}  // namespace mh
