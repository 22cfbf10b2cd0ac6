#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <numeric>
#include <string>
#include <utility>

#include "multihead/base/error.h"
#include "multihead/folders/alignment_heads.h"
#include "multihead/generate/align.h"
#include "multihead/heads/corpus/corpus_reader.h"
#include "multihead/heads/measures/heads_alignment.h"
#include "multihead/heads/measures/left_out_words.h"
#include "multihead/heads/measures/mean_aligner.h"
#include "multihead/heads/measures/pairs_without_links.h"
#include "multihead/models/encoder_decoder.h"

namespace mh {
namespace {

/// The sentences of a block that have words on both sides, and few enough to leave out each.
CorpusBlock with_few_words(const CorpusBlock& block) {
  CorpusBlock kept;
  const GoldAlignments& words = block.alignments;
  for (size_t i = 0; i < words.source_sizes.size(); ++i) {
    if (words_read(words.source_words[i]) == 0 || words_read(words.target_words[i]) == 0 ||
        words.source_sizes[i] > kMostWordsLeftOut)
      continue;
    kept.lines.push_back(block.lines[i]);
    kept.source.ids.push_back(block.source.ids[i]);
    kept.target.ids.push_back(block.target.ids[i]);
    kept.alignments.source_words.push_back(words.source_words[i]);
    kept.alignments.target_words.push_back(words.target_words[i]);
    kept.alignments.source_sizes.push_back(words.source_sizes[i]);
    kept.alignments.target_sizes.push_back(words.target_sizes[i]);
  }
  return kept;
}

/// Heads from the lowest error rate to the highest, by one query; the mean of a layer's heads is none of them.
AligningHeads ranked_heads(const AlignmentReport& report, const LanguageModel& model, AlignedQuery query) {
  std::vector<AlignmentScore> scores;
  for (const AlignmentScore& score : report.aligners) {
    if (score.query == query && score.head != AlignmentScore::kMeanOfHeads) scores.push_back(score);
  }
  std::stable_sort(scores.begin(), scores.end(), [](const AlignmentScore& a, const AlignmentScore& b) {
    return a.error_rate() < b.error_rate();
  });
  AligningHeads heads{.query = query};
  for (const AlignmentScore& score : scores)
    heads.heads.push_back({model.place(score.attention).layer, score.head});
  return heads;
}

/// Of one query: the first of the ranked heads whose mean has the lowest error rate.
ChosenAligners best_mean(const LanguageModel& model, const CorpusBlock& block, AligningHeads ranked,
                         const ObserveOptions& observe) {
  if (ranked.heads.size() > kMostAligningHeads) ranked.heads.resize(kMostAligningHeads);
  std::vector<AlignmentScore> means(ranked.heads.size(),
                                    AlignmentScore{.attention = {}, .query = ranked.query});
  MeanAligner aligner(ranked, [&](size_t sentence, std::span<const std::vector<int32_t>> found) {
    for (size_t n = 0; n < means.size(); ++n) means[n].add(found[n], block.alignments.alignments[sentence]);
  });
  aligner.begin(block);
  CorpusObserver* const observers[] = {&aligner};
  observe_corpus(model, block.source.ids, block.target.ids, observers, observe);
  size_t best = 0;
  for (size_t n = 1; n < means.size(); ++n) {
    if (means[n].error_rate() < means[best].error_rate()) best = n;
  }
  ranked.heads.resize(best + 1);
  return {.heads = std::move(ranked), .score = means[best]};
}

/// block: its alignments have words, and get their links here.
AlignmentReport chosen_of(const LanguageModel& model, CorpusBlock& block, const ObserveHeadsOptions& options,
                          const std::string& name) {
  ObserveOptions observe = options.observe;
  const std::vector<int64_t> numbers = block.numbers();
  observe.numbers = numbers;
  observe.progress = nullptr;
  for (const Tensor& differences : prediction_differences(model, block, observe))
    block.alignments.alignments.push_back(strongest_differences(differences, kLeastFall));
  AlignmentReport report;
  AlignmentScorer scorer;
  scorer.begin(block);
  CorpusObserver* const observers[] = {&scorer};
  observe_corpus(model, block.source.ids, block.target.ids, observers, observe);
  report.read.sentences = std::ssize(block.source.ids);
  report.aligners = scorer.scores();
  report.baseline = *scorer.baseline();
  if (report.baseline.gold == 0) {
    throw UsageError(
        fmt::format("{}: no word of these translations depends on a word of its source, so there is "
                    "nothing to choose heads by",
                    name));
  }
  const AlignedQuery query = best_aligner(report.aligners).query;
  report.chosen = best_mean(model, block, ranked_heads(report, model, query), observe);
  return report;
}

[[noreturn]] void refuse_no_words(const std::string& name) {
  throw UsageError(fmt::format(
      "{}: no pair has words on both sides, and at most {} in its source, of which each is left out once",
      name, kMostWordsLeftOut));
}

/// A token each, but for those with which all texts begin and the end token.
std::vector<WordOfToken> words_by_tokens(std::span<const std::vector<int32_t>> texts, int32_t eos_id) {
  size_t common = texts.size() > 1 ? texts[0].size() : 0;
  for (const std::vector<int32_t>& text : texts) {
    const auto first = std::mismatch(text.begin(), text.end(), texts[0].begin(), texts[0].end()).first;
    common = std::min(common, static_cast<size_t>(first - text.begin()));
  }
  std::vector<WordOfToken> words;
  for (const std::vector<int32_t>& text : texts) {
    WordOfToken& of_text = words.emplace_back(text.size(), -1);
    const size_t end = text.size() - (!text.empty() && text.back() == eos_id ? 1 : 0);
    // Texts that are all alike have no other words.
    const size_t begin = common < end ? common : 0;
    if (begin < end)
      std::iota(of_text.begin() + static_cast<std::ptrdiff_t>(begin),
                of_text.begin() + static_cast<std::ptrdiff_t>(end), 0);
  }
  return words;
}

/// The numbers of the shortest texts that have any token (ties: the first), in their order.
std::vector<int64_t> shortest_texts(std::span<const std::vector<int32_t>> texts, size_t most) {
  std::vector<int64_t> numbers;
  for (size_t i = 0; i < texts.size(); ++i) {
    if (!texts[i].empty()) numbers.push_back(static_cast<int64_t>(i));
  }
  std::stable_sort(numbers.begin(), numbers.end(), [&](int64_t a, int64_t b) {
    return texts[static_cast<size_t>(a)].size() < texts[static_cast<size_t>(b)].size();
  });
  numbers.resize(std::min(numbers.size(), most));
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

std::vector<int32_t> word_counts(const std::vector<WordOfToken>& words) {
  std::vector<int32_t> counts;
  for (const WordOfToken& of_text : words) counts.push_back(static_cast<int32_t>(words_read(of_text)));
  return counts;
}

}  // namespace

AlignmentReport heads_alignment_without_gold(const ModelFolder& folder, HeadsCorpus& corpus,
                                             const WithoutGoldOptions& options) {
  const LanguageModel& model = folder.translator();
  if (options.pairs < 1) throw UsageError(fmt::format("`pairs`: expected at least 1, got {}", options.pairs));
  PairsWithoutLinks pairs(folder, corpus, options.read, options.pairs);
  CorpusBlock all;
  ObserveHeadsOptions reading = options.read;
  reading.observe.progress = nullptr;
  const CorpusRead read =
      read_blocks(folder, pairs, reading, [&](const CorpusBlock& block, const ObserveOptions&) {
        CorpusBlock more = with_few_words(block);
        const auto append = [](auto& to, auto& from) {
          to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
        };
        append(all.lines, more.lines);
        append(all.source.ids, more.source.ids);
        append(all.target.ids, more.target.ids);
        append(all.alignments.source_words, more.alignments.source_words);
        append(all.alignments.target_words, more.alignments.target_words);
        append(all.alignments.source_sizes, more.alignments.source_sizes);
        append(all.alignments.target_sizes, more.alignments.target_sizes);
      });
  if (all.lines.empty()) refuse_no_words(corpus.name());
  if (const int64_t left_out = read.sentences - std::ssize(all.lines); left_out > 0 && options.read.remark) {
    options.read.remark(fmt::format("{} left out, without words on one side or of more than {} source words",
                                    left_out == 1 ? std::string("1 pair") : fmt::format("{} pairs", left_out),
                                    kMostWordsLeftOut));
  }
  AlignmentReport report = chosen_of(model, all, options.read, corpus.name());
  report.read.targets = pairs.targets();
  return report;
}

std::vector<Alignment> align_words(const ModelFolder& folder, HeadsCorpus& corpus, const AligningHeads& heads,
                                   const ObserveHeadsOptions& options) {
  check_heads(folder.translator(), heads, "alignment heads");
  corpus.restart();
  PairsWithoutLinks pairs(folder, corpus, options, std::numeric_limits<int64_t>::max());
  std::vector<Alignment> alignments;
  const std::vector<int64_t>* lines = nullptr;
  MeanAligner aligner(heads, [&](size_t sentence, std::span<const std::vector<int32_t>> found) {
    const auto line = static_cast<size_t>((*lines)[sentence]);
    if (alignments.size() < line) alignments.resize(line);
    for (size_t t = 0; t < found.back().size(); ++t) {
      if (found.back()[t] >= 0) alignments[line - 1].emplace_back(found.back()[t], static_cast<int32_t>(t));
    }
  });
  CorpusObserver* const observers[] = {&aligner};
  read_blocks(folder, pairs, options, [&](const CorpusBlock& block, const ObserveOptions& observe) {
    lines = &block.lines;
    aligner.begin(block);
    observe_corpus(*folder.model, block.source.ids, block.target.ids, observers, observe);
  });
  return alignments;
}

ChosenAligners choose_aligners(const LanguageModel& model, std::span<const std::vector<int32_t>> sources,
                               std::span<const std::vector<int32_t>> targets,
                               const WithoutGoldOptions& options) {
  model.facts().require_translator();
  if (sources.size() != targets.size())
    throw UsageError(
        fmt::format("{} sources and {} targets; there must be one for each", sources.size(), targets.size()));
  CorpusBlock all;
  for (size_t i = 0; i < sources.size() && std::ssize(all.lines) < options.pairs; ++i) {
    if (sources[i].empty() || targets[i].empty()) continue;
    all.lines.push_back(static_cast<int64_t>(i) + 1);
    all.source.ids.push_back(sources[i]);
    all.target.ids.push_back(targets[i]);
  }
  const int32_t eos_id = model.facts().eos_id;
  all.alignments.source_words = words_by_tokens(all.source.ids, eos_id);
  all.alignments.target_words = words_by_tokens(all.target.ids, eos_id);
  all.alignments.source_sizes = word_counts(all.alignments.source_words);
  all.alignments.target_sizes = word_counts(all.alignments.target_words);
  CorpusBlock few = with_few_words(all);
  if (few.lines.empty()) refuse_no_words("the text");
  return chosen_of(model, few, options.read, "the text").chosen.value();
}

AlignOptions aligners_for(
    const ModelFolder& folder, std::span<const std::vector<int32_t>> sources,
    const ObserveHeadsOptions& options,
    const std::function<std::vector<std::vector<Hypothesis>>(std::span<const int64_t> numbers)>& translate) {
  AlignOptions found;
  if (const auto named = alignment_heads_of(folder)) {
    found.heads = *named;
    return found;
  }
  sources = sources.first(std::min(sources.size(), kLinesToChooseFrom));
  const std::vector<int64_t> numbers = shortest_texts(sources, kShortestLines);
  std::vector<std::vector<int32_t>> targets(sources.size());
  auto translations = translate(numbers);
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (!translations[i].empty())
      targets[static_cast<size_t>(numbers[i])] = std::move(translations[i][0].tokens);
  }
  try {
    found.heads = choose_aligners(folder.translator(), sources, targets, {.read = options}).heads;
  } catch (const UsageError& error) {
    if (options.remark)
      options.remark(fmt::format("{}; the mean of the last layer's heads aligns", error.what()));
  }
  return found;
}

}  // namespace mh
