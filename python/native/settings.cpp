// What the library says of the settings of analyses, of the page of heads and of what a model does with texts.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <utility>
#include <vector>

#include "module_parts.h"
#include "multihead/base/error.h"
#include "multihead/base/suggestions.h"
#include "multihead/check/check_model.h"
#include "multihead/evaluate/bleu.h"
#include "multihead/evaluate/score_settings.h"
#include "multihead/generate/translate.h"
#include "multihead/heads/attribution/faithfulness.h"
#include "multihead/heads/circuit/heads_circuit.h"
#include "multihead/heads/contributions/heads_contributions.h"
#include "multihead/heads/corpus/observe_heads.h"
#include "multihead/heads/importance/pruning_curve.h"
#include "multihead/heads/lens/heads_lens.h"
#include "multihead/heads/measures/heads_circuits.h"
#include "multihead/heads/measures/heads_compare.h"
#include "multihead/heads/measures/heads_relations.h"
#include "multihead/heads/measures/heads_similar.h"
#include "multihead/heads/measures/heads_where.h"
#include "multihead/heads/patching/heads_patch.h"
#include "multihead/heads/reports/page/page_run.h"
#include "multihead/heads/retrieval/heads_retrieval.h"
#include "multihead/heads/steering/heads_steer.h"
#include "multihead/io/describe_settings.h"
#include "multihead/tasks/classify_text.h"
#include "multihead/tasks/embed_text.h"
#include "multihead/tasks/fill_words.h"
#include "multihead/tasks/generate_text.h"

namespace mh::python {
namespace {

struct Described {
  std::vector<SettingDescription> settings;
  template <class V>
  void visit(V& v) {
    v("settings", settings);
  }
};

template <class Settings>
std::string described(Settings defaults) {
  return to_json(Described{describe_settings(std::move(defaults))});
}

std::string settings(const std::string& verb) {
  if (verb == "bleu") return described(BleuConfig());
  if (verb == "check") return described(CheckOptions());
  if (verb == "classify") return described(ClassifyOptions());
  if (verb == "embed") return described(EmbedTextOptions());
  if (verb == "fill") return described(FillOptions());
  if (verb == "score") return described(ScoreSettings());
  if (verb == "generate") return described(GenerateTextOptions());
  if (verb == "translate") return described(TranslateOptions());
  if (verb == "alignment" || verb == "stats") return described(ObserveHeadsOptions());
  if (verb == "attribution") return described(FaithfulnessOptions());
  if (verb == "compare") return described(CompareOptions());
  if (verb == "circuit") return described(CircuitOptions());
  if (verb == "circuits") return described(CircuitsOptions());
  if (verb == "importance") return described(ImportanceSettings());
  if (verb == "contributions") return described(ContributionOptions());
  if (verb == "lens") return described(LensOptions());
  if (verb == "patch") return described(PatchOptions());
  if (verb == "relations") return described(RelationsOptions());
  if (verb == "retrieval") return described(RetrievalOptions());
  if (verb == "similar") return described(SimilarOptions());
  if (verb == "steer") return described(SteerOptions());
  if (verb == "view") return described(ViewSettings());
  if (verb == "where") return described(WhereOptions());
  throw UsageError("no settings of `" + verb + "` are described");
}

}  // namespace

void add_settings(nanobind::module_& module) {
  module.def("settings", settings, nanobind::arg("verb"));
  module.def("suggestions", suggestions, nanobind::arg("given"), nanobind::arg("names"));
}

}  // namespace mh::python
