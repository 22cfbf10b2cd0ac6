// Evidence of what heads do on a corpus: `multihead heads where`.
//
//   mh::TextCorpus corpus(text);
//   const mh::HeadEvidenceReport report =
//       mh::head_evidence(folder, corpus, {.heads = {mh::HeadPattern("encoder.3.self_attention.1")}});
//   for (const mh::EvidenceSentence& sentence : report.heads[0].strongest) ... sentence.query.form() ...
#pragma once

#include <vector>

#include "multihead/heads/corpus/observe_heads.h"
#include "multihead/heads/measures/head_evidence.h"

namespace mh {

struct HeadEvidenceReport {
  CorpusRead read = {};
  std::vector<HeadEvidence> heads = {};
};

/// Reads the corpus once. Throws UsageError on options out of range and, listing what exists, on heads that the model does not
/// have, and as observe_heads() does.
HeadEvidenceReport head_evidence(const ModelFolder& folder, HeadsCorpus& corpus,
                                 const EvidenceOptions& options = {}, const ObserveHeadsOptions& read = {});

}  // namespace mh
