#include "multihead/heads/measures/inspect_heads.h"

#include "multihead/heads/corpus/observe_heads.h"

namespace mh {

HeadReport inspect_heads(const ModelFolder& folder, HeadsCorpus& corpus, const InspectOptions& options) {
  HeadStatistics statistics(options.similarities ? HeadStatistics::Compare::kHeadsOfLayer
                                                 : HeadStatistics::Compare::kNothing);
  RelationScorer relations;
  AlignmentScorer aligners;
  CorpusObserver* const observers[] = {&statistics, &relations, &aligners};
  const CorpusRead read =
      observe_heads(folder, corpus, observers,
                    {.observe = options.observe, .languages = options.languages, .remark = options.remark});

  HeadReport report;
  report.sentences = read.sentences;
  report.targets = read.targets;
  report.heads = statistics.heads();
  if (options.similarities) report.similarities = statistics.similarities();
  report.relations = relations.scores();
  report.aligners = aligners.scores();
  report.alignment_baseline = aligners.baseline();
  return report;
}

HeadReport inspect_heads(const ModelFolder& folder, const HeadsText& text, const InspectOptions& options) {
  TextCorpus corpus(text);
  return inspect_heads(folder, corpus, options);
}

}  // namespace mh
