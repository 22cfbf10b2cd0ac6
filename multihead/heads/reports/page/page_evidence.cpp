#include "multihead/heads/reports/page/page_evidence.h"

#include <fmt/format.h>

#include "multihead/base/error.h"
#include "multihead/heads/importance/heads_importance.h"
#include "multihead/heads/measures/heads_alignment.h"
#include "multihead/heads/measures/heads_circuits.h"
#include "multihead/heads/measures/heads_relations.h"
#include "multihead/heads/measures/heads_similar.h"
#include "multihead/heads/measures/heads_stats.h"
#include "multihead/heads/measures/heads_where.h"
#include "multihead/heads/reports/circuits_json.h"
#include "multihead/heads/reports/importance_json.h"
#include "multihead/heads/reports/measures_json.h"
#include "multihead/heads/reports/similar_json.h"
#include "multihead/heads/reports/where_json.h"

namespace mh {
namespace {

/// Where a head is most sure: as much as fits beside its map.
EvidenceOptions evidence_of(int64_t sentences) {
  constexpr int64_t kFew = 100;  // so few sentences have hardly any token often
  EvidenceOptions options{.sentences = 5, .usual = 1, .tokens = 8, .alike = 3};
  if (sentences < kFew) options.least_count = 1;
  return options;
}

}  // namespace

PageEvidence page_evidence(const ModelFolder& folder, HeadsCorpus& corpus,
                           const PageEvidenceOptions& options) {
  PageEvidence found;
  const StatsReport stats = heads_stats(folder, corpus, options.observe);
  found.stats = stats_json(stats, options.model);
  found.of = stats.read.sentences == 1 ? "1 sentence" : fmt::format("{} sentences", stats.read.sentences);
  if (!options.corpus.empty()) found.of += " of " + options.corpus;
  ObserveHeadsOptions quiet = options.observe;  // what there was to remark has been said
  quiet.remark = nullptr;
  corpus.restart();
  found.similar = similar_json(heads_similar(folder, corpus, {.observe = quiet}), options.model);
  corpus.restart();
  found.where =
      where_json(heads_where(folder, corpus, {.evidence = evidence_of(stats.read.sentences), .read = quiet}),
                 options.model);
  if (options.relations) {
    corpus.restart();
    found.relations =
        relations_json(heads_relations(folder, corpus, {.observe = quiet, .random = false}), options.model);
  }
  if (options.alignment) {
    corpus.restart();
    found.alignment = alignment_json(heads_alignment(folder, corpus, quiet), options.model);
  }
  try {
    found.circuits = circuits_json(options.model, heads_circuits(*folder.model, {.compositions = false}));
  } catch (const UsageError&) {  // heads of a geometry without circuits
  }
  return found;
}

void add_importance(const ScoredModel& model, HeadsCorpus& corpus, HeadsCorpus& texts,
                    const PageEvidenceOptions& options, PageEvidence& evidence) {
  ImportanceOptions importance{.texts = {.read = options.observe}};
  importance.texts.read.remark = nullptr;  // what there was to remark has been said
  corpus.restart();
  const ScoredTexts scored = read_scored_texts(model.folder(), corpus, importance.texts);
  if (scored.kind != ScoreKind::kVectors || scored.texts.size() > 1)
    evidence.importance = importance_json(heads_importance(model, scored, importance), options.model);
  importance.measure = ImportanceMeasure::kAblation;
  importance.texts.read.observe.progress = nullptr;  // it counts texts times heads
  texts.restart();
  evidence.ablation = importance_json(heads_importance(model, texts, importance), options.model);
}

}  // namespace mh
