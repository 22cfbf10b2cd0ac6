// Inspects the heads of a model on a text: their statistics, the grammatical relations that they follow, and
// of a translator how well they align words. Where no translation is given, greedy search makes one. Other
// models (encoders and causal ones) read the text alone. `multihead heads` and the demo print these results.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "multihead/analysis/head_statistics.h"
#include "multihead/analysis/kept_weights.h"
#include "multihead/analysis/relations.h"
#include "multihead/analysis/word_alignment.h"
#include "multihead/data/alignment.h"
#include "multihead/data/tree_bank.h"
#include "multihead/models/model_folder.h"
#include "multihead/nn/head_name.h"

namespace mh {

/// The text by lines, with trees and alignments if they are known. Each list is empty or has an entry for
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
};

struct InspectOptions {
  ObserveOptions observe = {};
  bool similarities = true;  // fills HeadReport::similarities
  /// Called with one line worth knowing: how many lines were cut, which words the tokenizer does not know.
  std::function<void(const std::string&)> remark = nullptr;
};

/// What a translator's decoder reads. Other models have no decoder that reads another text.
enum class TargetsRead { kNone, kGiven, kGreedy };

struct HeadReport {
  int64_t sentences = 0;
  TargetsRead targets = TargetsRead::kNone;
  std::vector<HeadFigures> heads;
  std::vector<HeadSimilarity> similarities;
  std::vector<RelationScore> relations;  // of encoder and decoder, if trees are given
  std::vector<AlignmentScore> aligners;  // if alignments are given
  std::optional<AlignmentScore> alignment_baseline;
};

/// Inspects all heads on the text; lines without text are left out. Throws FormatError when trees or
/// alignments do not fit the text; UsageError when the lists have different numbers of lines, when target trees
/// or alignments are given without targets, when targets are given to a model that does not translate, trees
/// to a causal one, or pairs to one that does not read them; FileError when the folder has no tokenizer.
HeadReport inspect_heads(const ModelFolder& folder, const HeadsText& text,
                         const InspectOptions& options = {});

/// One sentence with the weights of all its attentions. Tokens are written as in the vocabulary; the lists of
/// labels beside them have them as people read them (Tokenizer::shown()).
struct SentenceWeights {
  std::vector<std::string> source_tokens;     // the keys of encoder and cross-attention, the end token last
  std::vector<std::string> target_tokens;     // what the decoder reads; a translator's start token first
  std::vector<std::string> predicted_tokens;  // what a translator's queries predict: the end token last
  std::vector<std::string> source_labels, target_labels, predicted_labels;
  std::vector<int32_t> source_ids, target_ids;
  std::string translation;
  TargetsRead targets = TargetsRead::kNone;
  std::vector<KeptAttention> attentions;

  /// Null when there is none of that name.
  const KeptAttention* find(std::string_view attention) const;
  /// Of one head, [queries, keys]. Throws UsageError on a head that the model does not have.
  const Tensor& weights(const HeadName& head) const;
  /// Labels of an attention's queries and keys.
  const std::vector<std::string>& query_labels(AttentionKind kind) const;
  const std::vector<std::string>& key_labels(AttentionKind kind) const;
};

/// What a picture of such an attention shows: "each source token attends to source tokens".
const char* what_attends(AttentionKind kind);

struct SentenceOptions {
  const Interventions* interventions = nullptr;
  /// Called with one line worth knowing: that the text was cut, which words the tokenizer does not know.
  std::function<void(const std::string&)> remark = nullptr;
  /// A second text, which is one sequence with the source; only of encoders that read pairs.
  std::optional<std::string> pair = std::nullopt;
};

/// An empty `target` of a translator is made by greedy search. A text of more tokens than the model reads is
/// cut. Throws UsageError on a target for another model, and on a pair for a model that does not read it.
SentenceWeights sentence_weights(const ModelFolder& folder, const std::string& source,
                                 const std::string& target = {}, const SentenceOptions& options = {});

/// Returns the most focused head of each kind of attention: the one with the largest (1 - entropy_share)
/// (1 - on_end), which has a low entropy and does not just look at the end (or start) token.
std::vector<HeadName> most_focused_heads(const SentenceWeights& sentence);

}  // namespace mh
