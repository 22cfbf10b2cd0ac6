#include "multihead/heads/measures/heads_alignment.h"

#include "multihead/base/error.h"

namespace mh {

AlignmentReport heads_alignment(const ModelFolder& folder, HeadsCorpus& corpus,
                                const ObserveHeadsOptions& options) {
  AlignmentScorer scorer;
  CorpusObserver* const observers[] = {&scorer};
  AlignmentReport report;
  report.read = observe_heads(folder, corpus, observers, options);
  const auto baseline = scorer.baseline();
  if (!baseline) throw UsageError(corpus.name() + " has no word alignments; give them in Pharaoh's format");
  if (baseline->gold == 0)
    throw UsageError(corpus.name() + ": its alignments link no words, so there is nothing to compare with");
  report.aligners = scorer.scores();
  report.baseline = *baseline;
  return report;
}

}  // namespace mh
