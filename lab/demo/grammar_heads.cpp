#include "lab/demo/grammar_heads.h"

#include <utility>

namespace mh {
namespace {

/// Trees in which each word hangs on the one before it: who follows them reads the previous word.
std::vector<std::vector<Word>> chains(std::vector<std::vector<Word>> trees) {
  for (std::vector<Word>& tree : trees) {
    for (size_t i = 0; i < tree.size(); ++i) {
      tree[i].head = static_cast<int>(i) - 1;
      tree[i].relation = tree[i].upos == "PUNCT" ? "punct" : kPreviousWord;
    }
  }
  return trees;
}

}  // namespace

HeadsText heads_text(std::span<const GrammarSentence> sentences) {
  HeadsText text;
  for (const GrammarSentence& sentence : sentences) {
    text.sources.push_back(text_of(sentence.source));
    text.targets.push_back(text_of(sentence.target));
    text.source_trees.push_back(sentence.source);
    text.target_trees.push_back(sentence.target);
    text.alignments.push_back(sentence.alignment);
  }
  return text;
}

RelationScore best_head_for(std::span<const RelationScore> scores, std::string_view relation,
                            Direction direction) {
  RelationScore best;
  for (const RelationScore& score : scores) {
    if (score.relation != relation || score.direction != direction) continue;
    if (best.attention.empty() || score.gain() > best.gain()) best = score;
  }
  return best;
}

RelationScore previous_word_head(const ModelFolder& folder, HeadsText text) {
  text.source_trees = chains(std::move(text.source_trees));
  text.target_trees = chains(std::move(text.target_trees));
  text.alignments.clear();
  const HeadReport report = inspect_heads(folder, text, {.similarities = false});
  RelationScore best;
  for (const RelationScore& score : report.relations) {
    const bool asked = score.relation == kPreviousWord && score.direction == Direction::kToHead;
    if (asked && score.score() > best.score()) best = score;
  }
  return best;
}

}  // namespace mh
