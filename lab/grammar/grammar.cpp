#include "lab/grammar/grammar.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <unordered_set>

#include "lab/grammar/derivation.h"
#include "lab/grammar/linearise.h"
#include "multihead/base/error.h"
#include "multihead/base/random.h"

namespace mh {
namespace {

GrammarSentence both_sides(const grammar::Clause& clause) {
  grammar::SentenceBuilder source, target;
  grammar::english(clause, source);
  grammar::german(clause, target);
  auto [source_words, source_meanings] = source.finish();
  auto [target_words, target_meanings] = target.finish();

  GrammarSentence sentence{std::move(source_words), std::move(target_words), {}, Novelty::kNone};
  for (size_t i = 0; i < source_meanings.size(); ++i) {
    if (source_meanings[i].node == nullptr) continue;
    for (size_t j = 0; j < target_meanings.size(); ++j) {
      if (source_meanings[i] == target_meanings[j])
        sentence.alignment.emplace_back(static_cast<int32_t>(i), static_cast<int32_t>(j));
    }
  }
  return sentence;
}

class Corpus {
 public:
  explicit Corpus(const GrammarOptions& options) : options_(options) {}

  /// `count` new sentences; `stream` names the part's random numbers, so that no part depends on another's
  /// size.
  void draw(std::vector<GrammarSentence>& part, uint64_t stream, int64_t count, Novelty novelty) {
    Random random(options_.seed, stream);
    const int depth = options_.depth + (novelty == Novelty::kDepth ? 1 : 0);
    // Deep and short ones are one in some thousand; where none turns up for so long there are no more.
    constexpr int64_t kPatience = 200'000;
    int64_t found = 0;
    for (int64_t draws = 0; draws < kPatience && found < count; ++draws) {
      const grammar::Drawn drawn = grammar::draw_sentence(random, options_.seed, depth);
      if (drawn.held_out != (novelty == Novelty::kVerbObject)) continue;
      if (novelty == Novelty::kDepth && drawn.depth != depth) continue;
      GrammarSentence sentence = both_sides(*drawn.clause);
      const auto longest = std::max(sentence.source.size(), sentence.target.size());
      if (longest > static_cast<size_t>(options_.max_words)) continue;
      std::string source = text_of(sentence.source), target = text_of(sentence.target);
      if (sources_.contains(source) || targets_.contains(target)) continue;
      sources_.insert(std::move(source));
      targets_.insert(std::move(target));
      sentence.novelty = novelty;
      part.push_back(std::move(sentence));
      ++found;
      draws = 0;
    }
    if (found < count) {
      throw UsageError(
          fmt::format("the grammar found only {} of {} new sentences of at most {} words; ask for fewer",
                      found, count, options_.max_words));
    }
  }

 private:
  const GrammarOptions& options_;
  std::unordered_set<std::string> sources_, targets_;
};

template <class T>
void check_setting(const char* name, T value, Rule<T> rule) {
  if (value >= rule.low && value <= rule.high) return;
  throw UsageError(
      fmt::format("grammar: {}: expected {}, got {}", name, numbers_within(rule.low, rule.high), value));
}

}  // namespace

GrammarCorpus make_grammar_corpus(const GrammarOptions& options) {
  check_setting("train", options.train, kGrammarPairs);
  check_setting("valid", options.valid, kGrammarPairs);
  check_setting("test", options.test, kGrammarPairs);
  check_setting("compositional", options.compositional, kGrammarPairs);
  check_setting("depth", options.depth, kGrammarDepths);
  check_setting("max_words", options.max_words, kGrammarWords);

  GrammarCorpus parts;
  Corpus corpus(options);
  // Training last: the other parts are then the same whatever its size.
  corpus.draw(parts.test, 1, options.test, Novelty::kNone);
  corpus.draw(parts.valid, 2, options.valid, Novelty::kNone);
  const int64_t pairs = (options.compositional + 1) / 2;
  corpus.draw(parts.compositional, 3, pairs, Novelty::kVerbObject);
  corpus.draw(parts.compositional, 4, options.compositional - pairs, Novelty::kDepth);
  corpus.draw(parts.train, 5, options.train, Novelty::kNone);
  return parts;
}

ParallelText parallel_text(std::span<const GrammarSentence> sentences) {
  ParallelText text;
  for (const GrammarSentence& sentence : sentences) {
    text.source.push_back(text_of(sentence.source));
    text.target.push_back(text_of(sentence.target));
  }
  return text;
}

}  // namespace mh
