#include "multihead/heads/reports/page/page_run.h"

#include <filesystem>
#include <utility>

#include "multihead/folders/weights_hash.h"
#include "multihead/heads/reports/page/page_attribution.h"
#include "multihead/heads/reports/page/page_contributions.h"
#include "multihead/heads/reports/page/page_lens.h"
#include "multihead/heads/reports/page/page_reports.h"
#include "multihead/heads/reports/page/page_texts.h"

namespace mh {
namespace {

/// "3" of an encoder or a causal model: the self-attention of layer 3.
std::string walked_attention(const Model& model, const std::string& walk) {
  if (walk.empty() || walk.find_first_not_of("0123456789") != std::string::npos) return walk;
  for (const Model::Attention& attention : model.attentions()) {
    if (attention.place.kind != AttentionKind::kCross && std::to_string(attention.place.layer) == walk)
      return attention.name;
  }
  return walk;  // the error lists those that there are
}

PageEvidence evidence_of(const ScoredModel& model, const std::vector<PageText>& texts,
                         const PageRunOptions& options) {
  PageEvidenceOptions of_evidence;
  of_evidence.model = options.model;
  of_evidence.observe.observe.sites = options.sites;
  of_evidence.observe.observe.progress = options.progress;
  of_evidence.observe.remark = options.remark;
  of_evidence.observe.languages = options.languages;
  TextCorpus own(corpus_text(texts));
  HeadsCorpus* corpus = options.corpus;
  if (corpus != nullptr) {
    of_evidence.corpus = std::filesystem::path(corpus->name()).filename().string();
    of_evidence.relations = options.relations;
    of_evidence.alignment = options.alignment;
  } else {
    of_evidence.observe.remark = nullptr;  // the texts' own remarks come when they are read for the page
    corpus = &own;
  }
  PageEvidence evidence = page_evidence(model.folder(), *corpus, of_evidence);
  if (options.importance) add_importance(model, *corpus, own, of_evidence, evidence);
  return evidence;
}

/// What is asked of each text takes as long as that of heads.
void add_analyses(const ScoredModel& model, const std::vector<PageText>& texts, const PageRunOptions& options,
                  PageRun& run) {
  if (!options.importance) return;
  run.lenses = page_lenses(model, texts, options.model, options.languages, options.sites);
  if (options.sites == nullptr) {
    run.attributions = page_attributions(model, texts, options.model, options.languages);
    run.contributions = page_contributions(model, texts, options.model, options.languages);
    return;
  }
  run.attributions = none_of_each_text(
      texts, "Heads are changed on this page, and attributions are made of unchanged models.");
  run.contributions = none_of_each_text(
      texts,
      "Heads are changed on this page, and its contributions are those of unchanged models; `multihead heads "
      "contributions` takes the same changes.");
}

}  // namespace

PageRun page_run(const ScoredModel& model, const std::vector<PageText>& texts,
                 const PageRunOptions& options) {
  // First, since they may be wrong and the rest takes long.
  std::string circuit = page_circuit(*model.folder().model, options.circuit);
  std::string retrieval = page_retrieval(*model.folder().model, options.retrieval);
  std::string aligners = page_aligners(*model.folder().model, options.aligners);
  PageRun run{.name = options.name,
              .folder = &model.folder(),
              .hash = weights_hash(model.folder()),
              .evidence = evidence_of(model, texts, options),
              .circuit = std::move(circuit),
              .retrieval = std::move(retrieval),
              .aligners = std::move(aligners),
              .walk = walked_attention(*model.folder().model, options.walk),
              .languages = options.languages,
              .sites = options.sites,
              .remark = options.remark};
  add_analyses(model, texts, options, run);
  return run;
}

}  // namespace mh
