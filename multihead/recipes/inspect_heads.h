// What a translator's heads do on a text: statistics, relations and alignments, with translations made here
// by greedy search where none are given. This is what `multihead heads` and the demo print.
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

/// Text by lines, and what is known about it; a list that is not empty has an entry for each source line.
struct HeadsText {
  std::vector<std::string> sources;
  std::vector<std::string> targets;  // empty: translated by greedy search
  std::vector<std::vector<Word>> source_trees;
  std::vector<std::vector<Word>> target_trees;  // need targets
  std::vector<Alignment> alignments;  // by words: those of the trees, else those between spaces; need targets
};

struct InspectOptions {
  ObserveOptions observe = {};
  bool similarities = true;  // fills HeadReport::similarities
  std::function<void(const std::string&)> remark =
      nullptr;  // one line worth knowing, e.g. which lines were cut
};

struct HeadReport {
  int64_t sentences = 0;
  bool translated = false;  // the targets were made here
  std::vector<HeadFigures> heads;
  std::vector<HeadSimilarity> similarities;
  std::vector<RelationScore> relations;  // of encoder and decoder, where trees are given
  std::vector<AlignmentScore> aligners;  // where alignments are given
  std::optional<AlignmentScore> alignment_baseline;
};

/// Lines without text are left out. Throws FormatError when trees or alignments do not fit the text,
/// UsageError when there are numbers of lines that differ or gold without its text; FileError when the folder
/// has no tokenizer.
HeadReport inspect_heads(const ModelFolder& folder, const HeadsText& text,
                         const InspectOptions& options = {});

/// One sentence with all of its weights.
struct SentenceWeights {
  std::vector<std::string> source_tokens;     // keys of encoder and cross-attention, the end token last
  std::vector<std::string> target_tokens;     // what the decoder reads: the start token first
  std::vector<std::string> predicted_tokens;  // what its queries predict: the end token last
  std::vector<int32_t> source_ids, target_ids;
  std::string translation;
  bool translated = false;
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

/// An empty `target` is made by greedy search.
SentenceWeights sentence_weights(const ModelFolder& folder, const std::string& source,
                                 const std::string& target = {},
                                 const Interventions* interventions = nullptr);

/// One head for each kind of attention: the one that is most decided and yet does not rest on the end (or
/// start) token, by (1 - entropy_share) (1 - on_end).
std::vector<HeadName> most_focused_heads(const SentenceWeights& sentence);

}  // namespace mh
