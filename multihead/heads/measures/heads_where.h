// Evidence of what heads do on a corpus: `multihead heads where`.
//
//   mh::TextCorpus corpus(text);
//   const mh::WhereReport report =
//       mh::heads_where(folder, corpus, {.evidence = {.heads = {mh::HeadPattern("encoder.3.self_attention.1")}}});
//   for (const mh::EvidenceSentence& sentence : report.heads[0].strongest) ... sentence.query.form() ...
#pragma once

#include <vector>

#include "multihead/heads/corpus/observe_heads.h"
#include "multihead/heads/measures/head_evidence.h"

namespace mh {

struct WhereOptions {
  EvidenceOptions evidence = {};
  ObserveHeadsOptions read = {};

  template <class V>
  void visit(V& v) {
    evidence.visit(v);
    read.visit(v);
  }
};

struct WhereReport {
  CorpusRead read = {};
  std::vector<HeadEvidence> heads = {};
};

/// Reads the corpus once. Throws UsageError on options out of range and, listing what exists, on heads that the model does not
/// have, and as observe_heads() does.
WhereReport heads_where(const ModelFolder& folder, HeadsCorpus& corpus, const WhereOptions& options = {});

}  // namespace mh
