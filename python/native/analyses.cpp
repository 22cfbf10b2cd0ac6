// The analyses of heads, each as the JSON that `multihead heads VERB --json` prints (docs/file-formats.md has every field).
#include <nanobind/stl/function.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "call.h"
#include "corpus.h"
#include "model.h"
#include "multihead/heads/attribution/faithfulness.h"
#include "multihead/heads/importance/pruning_curve.h"
#include "multihead/heads/measures/heads_alignment.h"
#include "multihead/heads/measures/heads_relations.h"
#include "multihead/heads/measures/heads_similar.h"
#include "multihead/heads/measures/heads_stats.h"
#include "multihead/heads/measures/heads_where.h"
#include "multihead/heads/patching/heads_patch.h"
#include "multihead/heads/reports/attribution_json.h"
#include "multihead/heads/reports/circuits_json.h"
#include "multihead/heads/reports/importance_json.h"
#include "multihead/heads/reports/measures_json.h"
#include "multihead/heads/reports/patch_json.h"
#include "multihead/heads/reports/report_options.h"
#include "multihead/heads/reports/similar_json.h"
#include "multihead/heads/reports/where_json.h"
#include "names.h"
#include "settings.h"

namespace mh::python {
namespace {

using Progress = std::function<void(int64_t)>;
using Names = std::vector<std::string>;

/// What all analyses of a corpus are given.
struct Reading {
  const LoadedModel& loaded;
  const Corpus& corpus;
  int64_t max_batch_tokens;
  Edits* edits;
  const Progress& progress;

  ObserveHeadsOptions options() const {
    return {.observe = {.max_batch_tokens = max_batch_tokens,
                        .sites = sites_of(edits, loaded),
                        .progress = progress},
            .remark = warn};
  }
};

std::vector<HeadPattern> patterns_of(const Names& heads) {
  std::vector<HeadPattern> patterns;
  for (const std::string& head : heads) patterns.emplace_back(head);
  return patterns;
}

/// Opens the corpus for an analysis that has options of its own.
template <class... Own>
auto on_corpus(std::string (*analysis)(const Reading&, HeadsCorpus&, Own...)) {
  return [analysis](const LoadedModel& loaded, const Corpus& corpus, int64_t max_batch_tokens, Edits* edits,
                    const Progress& progress, Own... own) {
    return long_call([&] {
      const std::unique_ptr<HeadsCorpus> opened = corpus.open();
      return analysis(Reading{loaded, corpus, max_batch_tokens, edits, progress}, *opened, own...);
    });
  };
}

std::string stats(const Reading& reading, HeadsCorpus& corpus) {
  return stats_json(heads_stats(reading.loaded.folder(), corpus, reading.options()), reading.loaded.path());
}

std::string relations(const Reading& reading, HeadsCorpus& corpus, bool random,
                      const std::string& arguments) {
  auto options = settings_of<RelationsOptions>(arguments, "relations");
  options.observe = reading.options();
  options.random = random;
  return with_options(
      relations_json(heads_relations(reading.loaded.folder(), corpus, options), reading.loaded.path()),
      "relations", options);
}

std::string alignment(const Reading& reading, HeadsCorpus& corpus) {
  return alignment_json(heads_alignment(reading.loaded.folder(), corpus, reading.options()),
                        reading.loaded.path());
}

std::string similar(const Reading& reading, HeadsCorpus& corpus, const std::string& arguments) {
  auto options = settings_of<SimilarOptions>(arguments, "similar");
  options.observe = reading.options();
  return with_options(
      similar_json(heads_similar(reading.loaded.folder(), corpus, options), reading.loaded.path()), "similar",
      options);
}

std::string where(const Reading& reading, HeadsCorpus& corpus, const Names& heads,
                  const std::string& arguments) {
  auto options = settings_of<WhereOptions>(arguments, "where");
  options.heads = patterns_of(heads);
  return with_options(where_json(heads_where(reading.loaded.folder(), corpus, options, reading.options()),
                                 reading.loaded.path()),
                      "where", options);
}

std::string importance(const Reading& reading, HeadsCorpus& corpus, const std::string& arguments) {
  auto settings = settings_of<ImportanceSettings>(arguments, "importance");
  settings.importance.texts.read = reading.options();
  const SentenceModel& model = reading.loaded.scored();
  const std::string& path = reading.loaded.path();
  return with_options(
      settings.curve
          ? importance_json(pruning_curve(model, corpus, settings.importance, settings.steps), path)
          : importance_json(heads_importance(model, corpus, settings.importance), path),
      "importance", settings);
}

void refuse_edits(Edits* edits, const LoadedModel& loaded) {
  if (sites_of(edits, loaded) != nullptr)
    throw UsageError("attributions are made of unchanged models; leave the `with` block");
}

std::vector<AttributionMethod> methods_of(const Names& names) {
  std::vector<AttributionMethod> methods;
  for (const std::string& name : names)
    methods.push_back(value_named(name, kAttributionMethodNames, "methods"));
  return methods;
}

std::string faithful(const Reading& reading, HeadsCorpus& corpus, bool of_pairs, const Names& methods,
                     int points, int draws, uint64_t seed, int steps) {
  refuse_edits(reading.edits, reading.loaded);
  const FaithfulnessOptions options{.attribution = {.methods = methods_of(methods),
                                                    .steps = steps,
                                                    .batch_tokens = reading.max_batch_tokens,
                                                    .remark = warn},
                                    .points = points,
                                    .draws = draws,
                                    .seed = seed,
                                    .progress = reading.progress};
  return faithfulness_json(of_pairs ? faithfulness(reading.loaded.sentences(), corpus, options)
                                    : faithfulness(reading.loaded.folder(), corpus, options),
                           reading.loaded.path());
}

std::string circuits(const LoadedModel& loaded, bool compositions, const std::string& arguments) {
  auto options = settings_of<CircuitsOptions>(arguments, "circuits");
  options.compositions = compositions;
  return long_call([&] {
    return with_options(circuits_json(loaded.path(), heads_circuits(loaded.model(), options)), "circuits",
                        options);
  });
}

std::string patch(const LoadedModel& loaded, const std::string& clean, const std::string& corrupt,
                  const std::string& answer, const std::string& wrong, const std::string& prefix,
                  const std::string& what, bool by_position, int64_t max_batch_tokens, Edits* edits,
                  const Progress& progress) {
  const PatchQuestion question{
      .clean = clean, .corrupt = corrupt, .answer = answer, .wrong = wrong, .prefix = prefix};
  PatchOptions options{.part = value_named(what, kPatchedPartNames, "what"),
                       .by_position = by_position,
                       .max_batch_tokens = max_batch_tokens,
                       .remark = warn};
  if (progress) options.progress = [&](int64_t done, int64_t) { progress(done); };
  return long_call([&] {
    options.sites = sites_of(edits, loaded);
    const PatchReport found = loaded.model().predicts() ? heads_patch(loaded.folder(), question, options)
                                                        : heads_patch(loaded.sentences(), question, options);
    return patch_json(found, loaded.path());
  });
}

std::string attribution(const LoadedModel& loaded, const std::string& text, const std::string& second,
                        const Names& methods, std::optional<int> position, const std::string& target_token,
                        const std::string& target, int steps, int64_t max_batch_tokens, Edits* edits) {
  refuse_edits(edits, loaded);
  const AttributionOptions options{.methods = methods_of(methods),
                                   .position = position,
                                   .target_token = target_token,
                                   .target = target,
                                   .steps = steps,
                                   .batch_tokens = max_batch_tokens,
                                   .remark = warn};
  return long_call([&] {
    return attribution_json(second.empty() ? heads_attribution(loaded.folder(), text, options)
                                           : heads_attribution(loaded.sentences(), text, second, options),
                            loaded.path(), text);
  });
}

}  // namespace

void add_analyses(nb::class_<LoadedModel>& model) {
  using namespace nb::literals;
  const auto add = [&](const char* name, auto analysis, const auto&... own) {
    model.def(name, on_corpus(analysis), "corpus"_a, nb::kw_only(), "max_batch_tokens"_a, "edits"_a.none(),
              "progress"_a.none(), own...);
  };
  add("stats", stats);
  add("relations", relations, "random"_a, "settings"_a);
  add("alignment", alignment);
  add("similar", similar, "settings"_a);
  add("where", where, "heads"_a, "settings"_a);
  add("importance", importance, "settings"_a);
  add("faithfulness", faithful, "of_pairs"_a, "methods"_a, "points"_a, "draws"_a, "seed"_a, "steps"_a);
  model.def("circuits", circuits, nb::kw_only(), "compositions"_a, "settings"_a)
      .def("patch", patch, nb::kw_only(), "clean"_a, "corrupt"_a, "answer"_a, "wrong"_a, "prefix"_a, "what"_a,
           "by_position"_a, "max_batch_tokens"_a, "edits"_a.none(), "progress"_a.none())
      .def("attribution", attribution, "text"_a, nb::kw_only(), "second"_a, "methods"_a, "position"_a.none(),
           "target_token"_a, "target"_a, "steps"_a, "max_batch_tokens"_a, "edits"_a.none());
}

}  // namespace mh::python
