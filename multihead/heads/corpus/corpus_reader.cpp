#include "multihead/heads/corpus/corpus_reader.h"

#include <fmt/format.h>

#include <utility>

#include "multihead/base/error.h"
#include "multihead/base/stop.h"
#include "multihead/io/lines.h"
#include "multihead/models/encoder_decoder.h"
#include "multihead/nn/list_sites.h"

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

/// The words of trees and alignments, or those of the text.
Sentences words_of(const std::vector<std::string>& lines, const Sentences& trees, bool aligned) {
  if (!trees.empty()) return trees;
  Sentences words;
  for (const std::string& line : lines) words.push_back(aligned ? split_at_spaces(line) : words_in(line));
  return words;
}

/// Leaves out lines without text, on all sides.
HeadsText without_blank_lines(HeadsText text, int64_t first) {
  HeadsText kept{
      .sources = {}, .alignments_name = text.alignments_name, .lines_left_out = text.lines_left_out};
  for (size_t i = 0; i < text.sources.size(); ++i) {
    if (!text.alignments.empty()) {
      const auto words_at = [&](const std::vector<std::string>& lines, const Sentences& trees) {
        return trees.empty() ? split_at_spaces(lines[i]).size() : trees[i].size();
      };
      check_alignment(text.alignments[i], words_at(text.sources, text.source_trees),
                      words_at(text.targets, text.target_trees), text.alignments_name,
                      static_cast<size_t>(first) + i + 1);
    }
    if (is_blank(text.sources[i])) continue;
    kept.sources.push_back(std::move(text.sources[i]));
    if (!text.pairs.empty()) kept.pairs.push_back(std::move(text.pairs[i]));
    if (!text.targets.empty()) kept.targets.push_back(std::move(text.targets[i]));
    if (!text.source_trees.empty()) kept.source_trees.push_back(std::move(text.source_trees[i]));
    if (!text.target_trees.empty()) kept.target_trees.push_back(std::move(text.target_trees[i]));
    if (!text.alignments.empty()) kept.alignments.push_back(std::move(text.alignments[i]));
  }
  return kept;
}

std::vector<int32_t> sizes(const Sentences& sentences) {
  std::vector<int32_t> all;
  for (const auto& words : sentences) all.push_back(static_cast<int32_t>(words.size()));
  return all;
}

}  // namespace

std::vector<int32_t> CorpusBlock::separators(AttentionKind kind, size_t i) const {
  std::vector<int32_t> found;
  if (kind == AttentionKind::kDecoderSelf && !causal) return found;  // a translator's start token is key 0
  if (source.offsets.empty()) return found;
  const auto& offsets = source.offsets[i];
  for (size_t key = 1; key < offsets.size(); ++key) {
    if (offsets[key] == std::pair(0, 0)) found.push_back(static_cast<int32_t>(key));
  }
  return found;
}

std::vector<int64_t> CorpusBlock::numbers() const {
  std::vector<int64_t> all;
  for (const int64_t line : lines) all.push_back(line - 1);
  return all;
}

void LeftOutLines::tell(const char* reason, const std::function<void(const std::string&)>& remark) const {
  if (count == 0 || !remark) return;
  remark(count == 1 ? fmt::format("line {} left out, {}", first, reason)
                    : fmt::format("{} lines left out, {}; the first is line {}", count, reason, first));
}

CorpusReader::CorpusReader(const ModelFolder& folder, HeadsCorpus& corpus, Options options)
    : folder_(folder),
      corpus_(corpus),
      options_(std::move(options)),
      languages_(language_pair(folder_, options_.languages)),
      reader_(folder_, options_.remark, languages_) {}

std::optional<CorpusBlock> CorpusReader::next() {
  CorpusBlock block;
  int64_t first = 0;
  do {
    throw_if_stopped();
    first = lines_;
    HeadsText text = corpus_.next();
    if (text.sources.empty()) {
      std::exchange(half_pairs_, {})
          .tell("with a target or a second text, but no source text", options_.remark);
      return std::nullopt;
    }
    check_lists(text);
    const auto lines = std::ssize(text.sources);
    for (size_t i = 0; i < text.sources.size(); ++i) {
      const int64_t line = lines_ + static_cast<int64_t>(i) + 1;
      if (!is_blank(text.sources[i])) {
        block.lines.push_back(line);
      } else if (has_other_side(text, i)) {
        half_pairs_.add(line);
      }
    }
    block.text = without_blank_lines(std::move(text), lines_);
    lines_ += lines;
  } while (block.text.sources.empty());
  block.causal = is_causal(folder_);
  block.first = std::exchange(sentences_, sentences_ + std::ssize(block.text.sources));

  const HeadsText& text = block.text;
  const bool align = !text.alignments.empty();
  Sentences source_words, target_words;
  if (options_.words || align || !text.source_trees.empty())
    source_words = words_of(text.sources, text.source_trees, align);
  if (!text.targets.empty() && (options_.words || align || !text.target_trees.empty()))
    target_words = words_of(text.targets, text.target_trees, align);
  // The number of a line is off where lines without text came before it in its block.
  const auto from = [&](const char* one) {
    return LinesFrom{.first = static_cast<size_t>(first) + 1, .one = one};
  };
  const auto from_source = [&](const char* one) {
    LinesFrom lines = from(text.source_trees.empty() ? one : "sentence");
    if (!text.source_trees.empty()) lines.name = corpus_.name();
    return lines;
  };
  InspectedTexts& source = block.source;
  InspectedTexts& target = block.target;
  if (!text.pairs.empty()) {
    if (!text.source_trees.empty())
      throw UsageError("trees describe one text; leave out the trees or the second texts");
    source = reader_.pairs(text.sources, text.pairs, from("pair"));
    refuse_targets(folder_, !text.targets.empty());
  } else if (translates(folder_)) {
    source = reader_.translated(text.sources, TextSide::kSource, source_words, from_source("source line"));
    targets_read_ = text.targets.empty() ? TargetsRead::kGreedy : TargetsRead::kGiven;
    if (!text.targets.empty()) {
      target = reader_.translated(text.targets, TextSide::kTarget, target_words, from("target line"));
    } else {
      const std::vector<int64_t> numbers = block.numbers();
      ListSites listed(options_.sites, {.texts = numbers});
      target.ids = greedy_translations(folder_, source.ids, languages_, listed.sites());
    }
  } else {
    refuse_targets(folder_, !text.targets.empty());
    source = reader_.whole(text.sources, source_words, from_source("line"));
  }

  if (!text.source_trees.empty())
    (is_causal(folder_) ? block.decoder_trees : block.encoder_trees) = {text.source_trees, source.words};
  if (!text.target_trees.empty()) {
    block.decoder_trees = {text.target_trees, target.words};
    for (WordOfToken& words : block.decoder_trees.word_of_token)
      words.insert(words.begin(), -1);  // the start token
  }
  if (align) {
    block.alignments = {text.alignments, source.words, target.words, sizes(source_words),
                        sizes(target_words)};
  }
  return block;
}

}  // namespace mh
