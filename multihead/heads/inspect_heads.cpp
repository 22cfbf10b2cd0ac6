#include "multihead/heads/inspect_heads.h"

#include <fmt/format.h>

#include <algorithm>

#include "multihead/base/error.h"
#include "multihead/heads/inspected_texts.h"
#include "multihead/models/encoder_decoder.h"

namespace mh {
namespace {

using Sentences = std::vector<std::vector<Word>>;

std::vector<Word> split_at_spaces(const std::string& line) {
  std::vector<Word> words;
  for (size_t at = 0; at < line.size();) {
    const size_t begin = line.find_first_not_of(" \t", at);
    if (begin == std::string::npos) break;
    const size_t end = std::min(line.find_first_of(" \t", begin), line.size());
    words.emplace_back().form = line.substr(begin, end - begin);
    at = end;
  }
  return words;
}

void check_count(const char* what, size_t count, size_t lines) {
  if (count != 0 && count != lines) {
    throw UsageError(
        fmt::format("{} {} for {} source lines; there must be one for each", count, what, lines));
  }
}

size_t words_in(const std::vector<std::string>& lines, const Sentences& trees, size_t i) {
  return trees.empty() ? split_at_spaces(lines[i]).size() : trees[i].size();
}

// Lines without text are left out on all sides.
HeadsText without_empty_lines(const HeadsText& text) {
  check_count("target lines", text.targets.size(), text.sources.size());
  check_count("second texts", text.pairs.size(), text.sources.size());
  check_count("source trees", text.source_trees.size(), text.sources.size());
  check_count("target trees", text.target_trees.size(), text.sources.size());
  check_count("alignments", text.alignments.size(), text.sources.size());
  if (text.targets.empty() && !(text.target_trees.empty() && text.alignments.empty())) {
    throw UsageError("target trees and alignments speak of given targets: give the target text too");
  }
  HeadsText kept;
  for (size_t i = 0; i < text.sources.size(); ++i) {
    if (text.sources[i].find_first_not_of(" \t\r") == std::string::npos) continue;
    kept.sources.push_back(text.sources[i]);
    if (!text.pairs.empty()) kept.pairs.push_back(text.pairs[i]);
    if (!text.targets.empty()) kept.targets.push_back(text.targets[i]);
    if (!text.source_trees.empty()) kept.source_trees.push_back(text.source_trees[i]);
    if (!text.target_trees.empty()) kept.target_trees.push_back(text.target_trees[i]);
    if (text.alignments.empty()) continue;
    check_alignment(text.alignments[i], words_in(text.sources, text.source_trees, i),
                    words_in(text.targets, text.target_trees, i), text.alignments_name, i + 1);
    kept.alignments.push_back(text.alignments[i]);
  }
  return kept;
}

Sentences words_of(const std::vector<std::string>& lines, const Sentences& trees) {
  if (!trees.empty()) return trees;
  Sentences words;
  for (const std::string& line : lines) words.push_back(split_at_spaces(line));
  return words;
}

std::vector<int32_t> sizes(const Sentences& sentences) {
  std::vector<int32_t> all;
  for (const auto& words : sentences) all.push_back(static_cast<int32_t>(words.size()));
  return all;
}

}  // namespace

HeadReport inspect_heads(const ModelFolder& folder, const HeadsText& given, const InspectOptions& options) {
  const HeadsText text = without_empty_lines(given);
  const bool align = !text.alignments.empty();
  const InspectedTextReader reader(folder, options.remark);

  Sentences source_words, target_words;
  if (align || !text.source_trees.empty()) source_words = words_of(text.sources, text.source_trees);
  if (align || !text.target_trees.empty()) target_words = words_of(text.targets, text.target_trees);
  const bool pairs = !text.pairs.empty();
  if (pairs && !text.source_trees.empty())
    throw UsageError("trees speak of one text; leave out the trees or the second texts");
  InspectedTexts source, target;
  HeadReport report;
  report.sentences = static_cast<int64_t>(text.sources.size());
  if (pairs) {
    source = reader.pairs(text.sources, text.pairs);
    refuse_targets(folder, !text.targets.empty());
  } else if (translates(folder)) {
    source = reader.translated(text.sources, folder.source_tokens(), source_words, "source line");
    for (auto& ids : source.ids) ids.push_back(folder.translator().config().eos_id);
    for (auto& words : source.words) words.push_back(-1);
    report.targets = text.targets.empty() ? TargetsRead::kGreedy : TargetsRead::kGiven;
    if (text.targets.empty()) {
      target.ids = greedy_translations(folder, source.ids, options.observe.sites);
    } else {
      target = reader.translated(text.targets, folder.target_tokens(), target_words, "target line");
    }
  } else {
    refuse_targets(folder, !text.targets.empty());
    source = reader.whole(text.sources, source_words, "line");
  }

  GoldTrees source_gold, target_gold;
  // A causal model is a decoder that reads the source.
  if (!text.source_trees.empty())
    (is_causal(folder) ? target_gold : source_gold) = {text.source_trees, source.words};
  if (!text.target_trees.empty()) {
    target_gold = {text.target_trees, target.words};
    for (WordOfToken& words : target_gold.word_of_token) words.insert(words.begin(), -1);  // the start token
  }
  GoldAlignments alignments;
  if (align) {
    alignments = {text.alignments, source.words, target.words, sizes(source_words), sizes(target_words)};
  }
  HeadStatistics statistics;
  RelationScorer relations(source_gold, target_gold);
  AlignmentScorer aligners(alignments);
  std::vector<CorpusObserver*> observers{&statistics, &relations, &aligners};
  ObserveOptions observe = options.observe;
  observe.source_types = source.types;
  observe_corpus(*folder.model, source.ids, target.ids, observers, observe);

  report.heads = statistics.heads();
  if (options.similarities) report.similarities = statistics.similarities();
  report.relations = relations.scores();
  report.aligners = aligners.scores();
  if (align) report.alignment_baseline = aligners.baseline();
  return report;
}

}  // namespace mh
