#include "multihead/heads/corpus/heads_corpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "multihead/base/error.h"
#include "multihead/io/lines.h"

namespace mh {
namespace {

void check_count(const char* what, size_t count, size_t lines) {
  if (count != 0 && count != lines) {
    throw UsageError(
        fmt::format("{} {} for {} source lines; there must be one for each", count, what, lines));
  }
}

template <class T>
std::vector<T> part_of(const std::vector<T>& all, size_t first, size_t last) {
  if (all.empty()) return {};
  return {all.begin() + static_cast<std::ptrdiff_t>(first), all.begin() + static_cast<std::ptrdiff_t>(last)};
}

}  // namespace

bool has_other_side(const HeadsText& text, size_t i) {
  const auto is_there = [i](const std::vector<std::string>& side) {
    return !side.empty() && !is_blank(side[i]);
  };
  return is_there(text.targets) || is_there(text.pairs);
}

void check_lists(const HeadsText& text) {
  check_count("target lines", text.targets.size(), text.sources.size());
  check_count("second texts", text.pairs.size(), text.sources.size());
  check_count("source trees", text.source_trees.size(), text.sources.size());
  check_count("target trees", text.target_trees.size(), text.sources.size());
  check_count("alignments", text.alignments.size(), text.sources.size());
  if (text.targets.empty() && !(text.target_trees.empty() && text.alignments.empty()))
    throw UsageError("target trees and alignments need the target text");
}

TextCorpus::TextCorpus(HeadsText text) : text_(std::move(text)) {
  check_lists(text_);
}

HeadsText TextCorpus::next() {
  const size_t first = done_, last = std::min(first + kCorpusLines, text_.sources.size());
  done_ = last;
  return {.sources = part_of(text_.sources, first, last),
          .targets = part_of(text_.targets, first, last),
          .pairs = part_of(text_.pairs, first, last),
          .source_trees = part_of(text_.source_trees, first, last),
          .target_trees = part_of(text_.target_trees, first, last),
          .alignments = part_of(text_.alignments, first, last),
          .alignments_name = text_.alignments_name};
}

}  // namespace mh
