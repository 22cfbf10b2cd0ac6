// All that a page shows of a model: what its heads do, which of them matter, which tokens count, what each part adds to what it says,
// and what its layers would say.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "multihead/folders/scored_model.h"
#include "multihead/heads/corpus/heads_corpus.h"
#include "multihead/heads/reports/page/heads_page.h"
#include "multihead/heads/reports/page/live_weights.h"
#include "multihead/text/text_languages.h"

namespace mh {

/// A report that a verb of `multihead heads` wrote with --json.
struct PageReport {
  std::string json = {};  // empty: there is none
  std::string name = {};  // what messages call it
};

struct PageRunOptions {
  std::string name = {};          // of the run on the page
  std::string model = {};         // what the JSON calls the model
  HeadsCorpus* corpus = nullptr;  // what heads do is measured on it; null: on the page's texts
  bool relations = false;         // it has trees
  bool alignment = false;         // it has alignments
  /// What heads and tokens count for, contributions and lens, which take longest. The model is then one that load_scored_model() opens.
  bool importance = true;
  /// An attention, or of an encoder or a causal model the number of a layer; empty: none is walked through.
  std::string walk = {};
  /// Of `heads circuit`, `heads retrieval` and `heads alignment`, of this model.
  PageReport circuit = {}, retrieval = {}, aligners = {};
  TextLanguages languages = {};
  Sites* sites = nullptr;                                    // e.g. SiteValues that mute heads
  std::function<void(const std::string&)> remark = nullptr;  // as ObserveTextOptions::remark
  std::function<void(int64_t sentences_done)> progress = nullptr;

  template <class V>
  void visit(V& v) {
    v("walk", walk, {},
      {.group = kPageGroup,
       .help =
           "An attention, e.g. encoder.0.self_attention, or the number of a layer: add a walk through it, "
           "step by step, on the first text",
       .value = "ATTENTION"});
    v("importance", importance, {},
      {.group = kPageGroup,
       .help = "Importance, attribution, contributions and lens, which take longest",
       .rare = true});
    languages.visit(v);
  }
};

/// All settings of `multihead view`.
struct ViewSettings {
  HeadsPageOptions page = {};
  PageRunOptions run = {};
  LiveOptions live = {};

  template <class V>
  void visit(V& v) {
    page.visit(v);
    run.visit(v);
    live.visit(v);
  }
};

/// Measures a run for HeadsPage::add_run(). The model outlives it. Throws as the measures do, and FormatError on reports of other verbs
/// and of other models.
PageRun page_run(const ScoredModel& model, const std::vector<PageText>& texts, const PageRunOptions& options);

}  // namespace mh
