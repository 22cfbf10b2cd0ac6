// Inspects the heads of a model on a text: their statistics, the grammatical relations that they follow, and
// of a translator how well they align words. Where no translation is given, greedy search makes one. Other
// models (encoders and causal ones) read the text alone. `multihead heads` and the demo print these results.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "multihead/folders/model_folder.h"
#include "multihead/heads/corpus/heads_corpus.h"
#include "multihead/heads/measures/head_statistics.h"
#include "multihead/heads/measures/relations.h"
#include "multihead/heads/measures/word_alignment.h"
#include "multihead/heads/sites/observe_text.h"
#include "multihead/nn/head_name.h"
#include "multihead/text/text_languages.h"

namespace mh {

struct InspectOptions {
  ObserveOptions observe = {};
  TextLanguages languages = {};
  bool similarities = true;  // fills HeadReport::similarities, and HeadFigures::cosine and divergence
  /// Called with one line worth knowing: how many lines were cut, which words the tokenizer does not know.
  std::function<void(const std::string&)> remark = nullptr;

  /// All but `similarities`.
  template <class V>
  void visit(V& v) {
    observe.visit(v);
    languages.visit(v);
  }
};

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
/// alignments do not fit the text, and when there is no text; UsageError when the lists have different numbers of lines, when
/// target trees or alignments are given without targets, when targets are given to a model that does not translate, or
/// pairs to one that does not read them; FileError when the folder has no tokenizer.
HeadReport inspect_heads(const ModelFolder& folder, const HeadsText& text,
                         const InspectOptions& options = {});
/// The same on a corpus that is read block by block.
HeadReport inspect_heads(const ModelFolder& folder, HeadsCorpus& corpus, const InspectOptions& options = {});

/// Returns the most focused head of each kind of attention: the one with the largest (1 - entropy_share)
/// (1 - on_end), which has a low entropy and does not just look at the end (or start) token. Throws UsageError unless the
/// weights of all heads were kept.
std::vector<HeadName> most_focused_heads(const Observation& seen);

}  // namespace mh
