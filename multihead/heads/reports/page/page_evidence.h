// What a page shows of a head beyond its texts: what the verbs of `multihead heads` print as JSON.
#pragma once

#include <string>

#include "multihead/folders/model_folder.h"
#include "multihead/folders/scored_model.h"
#include "multihead/heads/corpus/observe_heads.h"

namespace mh {

/// JSON as the functions *_json() write it; empty: it is not there.
struct PageEvidence {
  std::string of = {};  // what it was measured on, in words: "2,001 sentences of en_ewt-ud-dev.conllu"
  std::string stats = {}, similar = {}, relations = {}, alignment = {}, where = {}, circuits = {};
  std::string importance = {};  // by gradients, on the corpus
  std::string ablation = {};    // without each head, on the page's texts
};

struct PageEvidenceOptions {
  ObserveHeadsOptions observe = {};
  std::string model = {};   // what the JSON calls it
  std::string corpus = {};  // what `of` calls it
  bool relations = false;   // the corpus has trees
  bool alignment = false;   // the corpus has alignments
};

/// Reads the corpus once for each measure. Throws as they do.
PageEvidence page_evidence(const ModelFolder& folder, HeadsCorpus& corpus,
                           const PageEvidenceOptions& options);
/// `importance` and `ablation`. corpus: as for page_evidence(); texts: those of the page, which are few. The gradient of a text's
/// vector needs another text's: of a single one it stays empty.
void add_importance(const ScoredModel& model, HeadsCorpus& corpus, HeadsCorpus& texts,
                    const PageEvidenceOptions& options, PageEvidence& evidence);

}  // namespace mh
