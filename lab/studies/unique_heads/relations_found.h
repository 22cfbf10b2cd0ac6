// 003.4: a head is chosen on some sentences (validation) and scored on others (test), and so is the fixed offset
// that it is compared with.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lab/grammar/grammar.h"
#include "lab/studies/arms.h"
#include "multihead/heads/measures/inspect_heads.h"

namespace mh::unique_heads {

using Trees = std::vector<std::vector<Word>>;

/// What the heads of one model do on some sentences, and the trees of their sources.
struct Part {
  HeadReport report;
  Trees trees;
};

/// Words of a relation, in validation and in test, or it is left out.
inline constexpr int64_t kFewestWords = 50;
inline constexpr const char* kNextWord = "next";  // kPreviousWord is in grammar_heads.h
/// Where the word stands that these two ask for, -1 or 1; 0: another relation.
int neighbour_of(std::string_view relation);
inline constexpr Direction kBothDirections[] = {Direction::kToHead, Direction::kToDependent};
inline constexpr Direction kFromHead[] = {Direction::kToDependent};

/// Trees in which each word but punctuation hangs on the neighbour_of() these two, by this relation. Of another
/// relation the trees as they are.
Trees neighbour_trees(Trees trees, const std::string& relation);

/// At how many of the words that RelationScore::support counts a rule is right that reads the word at a fixed
/// offset.
int64_t found_at_offset(const Trees& trees, std::string_view relation, Direction direction, int offset);

/// The head of the encoder that is furthest above the best fixed offset on validation (ties: the first direction,
/// then the first head). The offset is the best of validation; the figures are those of test. Its support is 0
/// where the relation has fewer than kFewestWords in one of them.
RelationScore choose_head(const Part& validation, const Part& test, std::string_view relation,
                          std::span<const Direction> directions);

/// Over all relations with kFewestWords or more: of the words with a head, the share from which a rule finds it.
struct Totals {
  RelationScore single;        // the head that is best over all of them on validation; relation "all"
  double each = 0;             // each relation's own head, chosen on validation
  double offsets = 0;          // each relation's own fixed offset, chosen on validation
  double right_branching = 0;  // the head of every word is the next word
};
Totals totals(const Part& validation, const Part& test);

/// The sentences that are new: neither side is in `known`, and the tokenizers know all words.
std::vector<GrammarSentence> new_sentences(std::vector<GrammarSentence> drawn,
                                           const std::set<std::string>& known,
                                           const TranslatorTokenizers& tokenizers);

struct FreshSentences {
  std::vector<GrammarSentence> validation, test;
};
/// From another seed of the generator; none is in the text of the runner. REQUIRES: not the paper's size.
FreshSentences fresh_sentences(const ArmRunner& runner);
/// 6, 7, ...: as many as the runner has, at most 5. No earlier version of the claim was run with them.
std::vector<uint64_t> fresh_seeds(const ArmRunner& runner);

/// What is found in the model of one seed; all is chosen on validation and scored on test.
struct SeedFindings {
  uint64_t seed = 0;
  double loss = 0, exact = 0;                  // of the runner's test text
  std::map<std::string, RelationScore> heads;  // previous, next, det, obj, nsubj
  std::vector<RelationScore> relations;        // the best head of each relation and direction
  Totals totals;
  /// Of the head that reads the previous word: how often that is its largest weight, its own word, punctuation
  /// and the end token counted, too (HeadFigures::most_at_offset).
  double previous_of_all = 0;
};
using Findings = std::vector<SeedFindings>;  // of the models of one arm
Findings find_heads(ArmRunner& runner, const Arm& arm, const FreshSentences& sentences);
/// Of SeedFindings::relations, those whose chosen heads, of all seeds together, are right at fewer words than the
/// fixed offset is.
int count_below_offset(const Findings& findings);

/// A model of the runner as inspect_heads() reads it.
ModelFolder folder_of(ArmRunner& runner, const Arm& arm, uint64_t seed);

}  // namespace mh::unique_heads
