#include "lab/grammar/grammar.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_set>

#include "lab/grammar/derivation.h"
#include "lab/grammar/linearise.h"
#include "multihead/base/error.h"
#include "multihead/base/file.h"
#include "multihead/base/random.h"
#include "multihead/data/conllu.h"

namespace mh {
namespace {

GrammarSentence both_sides(const grammar::Clause& clause) {
  grammar::Side source = grammar::english(clause), target = grammar::german(clause);
  GrammarSentence sentence{std::move(source.words), std::move(target.words), {}, Novelty::kNone};
  for (size_t i = 0; i < source.meanings.size(); ++i) {
    if (source.meanings[i].node == nullptr) continue;
    for (size_t j = 0; j < target.meanings.size(); ++j) {
      if (source.meanings[i] == target.meanings[j])
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

struct Part {
  const char* name;
  int64_t GrammarOptions::*pairs;
  std::vector<GrammarSentence> GrammarCorpus::*sentences;
};
constexpr Part kParts[] = {{"train", &GrammarOptions::train, &GrammarCorpus::train},
                           {"valid", &GrammarOptions::valid, &GrammarCorpus::valid},
                           {"test", &GrammarOptions::test, &GrammarCorpus::test},
                           {"compositional", &GrammarOptions::compositional, &GrammarCorpus::compositional}};
constexpr std::string_view kEndings[] = {"en", "de", "en.conllu", "de.conllu", "align"};

void add_part(FolderWriter& writer, std::string_view part, std::span<const GrammarSentence> sentences) {
  std::string files[std::size(kEndings)];
  for (size_t i = 0; i < sentences.size(); ++i) {
    const GrammarSentence& sentence = sentences[i];
    const std::string id = fmt::format("{}-{}", part, i + 1);
    files[0].append(text_of(sentence.source)) += '\n';
    files[1].append(text_of(sentence.target)) += '\n';
    files[2] += format_conllu(sentence.source, id);
    files[3] += format_conllu(sentence.target, id);
    files[4].append(format_pharaoh(sentence.alignment)) += '\n';
  }
  for (size_t i = 0; i < std::size(kEndings); ++i)
    writer.add(fmt::format("{}.{}", part, kEndings[i]), files[i]);
}

template <class T>
void check_setting(const char* name, T value, Rule<T> rule) {
  if (value >= rule.low && value <= rule.high) return;
  throw UsageError(
      fmt::format("grammar: {}: expected {}, got {}", name, numbers_within(rule.low, rule.high), value));
}

}  // namespace

GrammarCorpus make_grammar_corpus(const GrammarOptions& options) {
  for (const Part& part : kParts) check_setting(part.name, options.*part.pairs, kGrammarPairs);
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

void check_grammar_folder(const std::filesystem::path& folder) {
  // It will be replaced: it must be new, empty, or hold nothing but what was written here.
  std::set<std::string, std::less<>> ours;
  for (const Part& part : kParts) {
    for (const auto ending : kEndings) ours.insert(fmt::format("{}.{}", part.name, ending));
  }
  refuse_foreign_files(folder, [&](std::string_view name) { return ours.contains(name); });
  check_can_write_folder(folder);
}

void write_grammar_corpus(const GrammarCorpus& corpus, const std::filesystem::path& folder) {
  check_grammar_folder(folder);
  FolderWriter writer(folder);
  for (const Part& part : kParts) add_part(writer, part.name, corpus.*part.sentences);
  writer.commit();
}

}  // namespace mh
