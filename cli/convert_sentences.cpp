#include "cli/convert_sentences.h"

#include <fmt/format.h>

#include <numeric>
#include <utility>

#include "cli/common.h"
#include "cli/model_text.h"
#include "multihead/base/error.h"
#include "multihead/base/file.h"
#include "multihead/evaluate/score.h"
#include "multihead/folders/text_tokens.h"
#include "multihead/heads/conversion/convert_model.h"
#include "multihead/heads/sites/inspected_texts.h"

namespace mh::cli {
namespace {

ComparedSentences random_sentences_for(const ModelFolder& folder, uint64_t seed) {
  constexpr int kSentences = 5;
  const ModelFacts facts = folder.model->facts();
  ComparedSentences sentences{
      .what = fmt::format("{} random {} (seed {})", kSentences,
                          translates(folder) ? "pairs of sentences" : "sentences", seed),
      .sources = random_sentences(facts, facts.vocabulary_read(), kSentences, seed),
      .targets = {}};
  if (!translates(folder)) return sentences;
  sentences.targets = random_sentences(facts, facts.vocabulary, kSentences, seed + 1);
  for (auto& target : sentences.targets) target.pop_back();
  return sentences;
}

ComparedSentences pairs_of(const CompareOn& on, const ModelFolder& folder, const LanguagePair& languages) {
  ModelText::Options options = text_options(false);
  options.languages = languages;
  ModelText text(folder, std::move(options));
  const auto sources = read_text(on.source), targets = read_text(on.target);
  if (sources.size() != targets.size() || sources.empty()) {
    throw FormatError(fmt::format("{} has {}, {} has {}; expected as many, and at least one", on.source,
                                  counted(std::ssize(sources), "line"), on.target, targets.size()));
  }
  ComparedSentences sentences{.what = counted(std::ssize(sources), "pair of sentences", "pairs of sentences"),
                              .sources = text.sources(sources, {.name = on.source}),
                              .targets = text.targets(targets, {.name = on.target})};
  tell_unknown(text);
  return sentences;
}

ComparedSentences lines_of(const CompareOn& on, const ModelFolder& folder) {
  const TextReader reader(folder, static_cast<size_t>(folder.model->facts().max_positions));
  ComparedSentences sentences;
  for (TextTokens& tokens :
       read_lines(reader, read_text(on.source),
                  {.from = {.name = on.source}, .remark = [](const std::string& line) { remark(line); }})) {
    if (!tokens.ids.empty()) sentences.sources.push_back(std::move(tokens.ids));
  }
  if (sentences.sources.empty())
    throw FormatError(fmt::format("{} has no text; give it a sentence a line", on.source));
  sentences.what = counted(std::ssize(sentences.sources), "sentence");
  return sentences;
}

}  // namespace

ComparedSentences compared_sentences(const ModelFolder& folder, const CompareOn& on) {
  if (!on.source.empty() && on.seed_given)
    throw UsageError("--seed has no meaning with --source, since no random sentences are made; leave it out");
  const LanguagePair languages = language_pair(folder, on.languages);
  if (!translates(folder) && !on.target.empty())
    throw UsageError(fmt::format("--target is for translators; {} holds a {} model: leave it out",
                                 folder.path.string(), folder.model_type));
  if (translates(folder) && on.source.empty() != on.target.empty())
    throw UsageError("--source and --target go together: line i must translate line i");
  if (!translates(folder))
    return on.source.empty() ? random_sentences_for(folder, on.seed) : lines_of(on, folder);
  ComparedSentences sentences =
      on.source.empty() ? random_sentences_for(folder, on.seed) : pairs_of(on, folder, languages);
  for (auto& target : sentences.targets) target.insert(target.begin(), folder.model->facts().start_id);
  return sentences;
}

double mean_log_probability(const LanguageModel& model, const ComparedSentences& sentences) {
  std::vector<std::vector<int32_t>> targets;  // without the start token
  for (const auto& read : sentences.targets) targets.emplace_back(read.begin() + 1, read.end());
  double sum = 0;
  size_t tokens = 0;
  for (const auto& sentence : score(model, sentences.sources, targets)) {
    sum = std::accumulate(sentence.begin(), sentence.end(), sum);
    tokens += sentence.size();
  }
  return sum / static_cast<double>(tokens);
}

}  // namespace mh::cli
