// A corpus on which heads are looked at: lines of text with what is known of them, block by block, so that memory does not grow
// with the corpus.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "multihead/data/alignment.h"
#include "multihead/data/tree_bank.h"

namespace mh {

/// Text by lines, with trees and alignments if they are known. Each list is empty or has an entry for
/// each source line.
struct HeadsText {
  std::vector<std::string> sources;
  std::vector<std::string> targets = {};  // empty: greedy search translates the sources
  /// Second texts, each one sequence with its source; only of encoders that read pairs, and without trees.
  std::vector<std::string> pairs = {};
  std::vector<std::vector<Word>> source_trees = {};
  std::vector<std::vector<Word>> target_trees = {};  // only with targets
  /// Alignments of words: those of the trees, else those between spaces. Only with targets.
  std::vector<Alignment> alignments = {};
  std::string alignments_name = "alignment";  // what errors call them, e.g. the path of their file
  int64_t lines_left_out = 0;                 // of the trees: multi-word tokens and empty nodes
};

/// Whether line i has a target or a second text beside its source.
bool has_other_side(const HeadsText& text, size_t i);
/// Throws UsageError when the lists have different numbers of lines, and on target trees or alignments without targets.
void check_lists(const HeadsText& text);

/// Some measures read it twice: the words are counted before heads are looked at.
class HeadsCorpus {
 public:
  virtual ~HeadsCorpus() = default;
  /// The next lines; no sources when all were given.
  virtual HeadsText next() = 0;
  /// Begins with the first line again.
  virtual void restart() = 0;
  /// What errors call it: the name of a file.
  virtual std::string name() const { return "the text"; }
};

/// What is in memory already. REQUIRES: the text outlives this.
class TextCorpus final : public HeadsCorpus {
 public:
  /// Throws UsageError as check_lists() does.
  explicit TextCorpus(HeadsText text);
  HeadsText next() override;
  void restart() override { done_ = 0; }

 private:
  HeadsText text_;
  size_t done_ = 0;
};

/// How many lines a block of a corpus has.
inline constexpr size_t kCorpusLines = 1024;

}  // namespace mh
