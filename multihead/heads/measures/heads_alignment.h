// Which heads of cross-attention align words: `multihead heads alignment`, by the measure of word_alignment.h.
#pragma once

#include <vector>

#include "multihead/heads/corpus/observe_heads.h"
#include "multihead/heads/measures/word_alignment.h"

namespace mh {

struct AlignmentReport {
  CorpusRead read = {};
  std::vector<AlignmentScore> aligners = {};  // AlignmentScorer::scores()
  AlignmentScore baseline = {};               // the best fixed offset
};

/// The corpus needs targets and alignments. Throws UsageError when it has none or they link no words, and as observe_heads() does.
AlignmentReport heads_alignment(const ModelFolder& folder, HeadsCorpus& corpus,
                                const ObserveHeadsOptions& options = {});

}  // namespace mh
