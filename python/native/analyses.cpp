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
#include "multihead/base/file.h"
#include "multihead/heads/attribution/faithfulness.h"
#include "multihead/heads/circuit/heads_circuit.h"
#include "multihead/heads/contributions/heads_contributions.h"
#include "multihead/heads/importance/pruning_curve.h"
#include "multihead/heads/lens/heads_lens.h"
#include "multihead/heads/measures/heads_alignment.h"
#include "multihead/heads/measures/heads_compare.h"
#include "multihead/heads/measures/heads_relations.h"
#include "multihead/heads/measures/heads_similar.h"
#include "multihead/heads/measures/heads_stats.h"
#include "multihead/heads/measures/heads_where.h"
#include "multihead/heads/patching/heads_patch.h"
#include "multihead/heads/reports/attribution_json.h"
#include "multihead/heads/reports/circuit_json.h"
#include "multihead/heads/reports/circuits_json.h"
#include "multihead/heads/reports/compare_json.h"
#include "multihead/heads/reports/contributions_json.h"
#include "multihead/heads/reports/importance_json.h"
#include "multihead/heads/reports/lens_json.h"
#include "multihead/heads/reports/measures_json.h"
#include "multihead/heads/reports/patch_json.h"
#include "multihead/heads/reports/pictures/draw_circuit.h"
#include "multihead/heads/reports/report_options.h"
#include "multihead/heads/reports/retrieval_json.h"
#include "multihead/heads/reports/similar_json.h"
#include "multihead/heads/reports/where_json.h"
#include "multihead/heads/retrieval/heads_retrieval.h"
#include "settings.h"

namespace mh::python {
namespace {

using Progress = std::function<void(int64_t)>;
using Names = std::vector<std::string>;

/// What all analyses of a corpus are given.
struct Reading {
  const LoadedModel& loaded;
  const Corpus& corpus;
  const std::string& settings;  // JSON
  Edits* edits;
  const Progress& progress;

  void attach(ObserveHeadsOptions& options) const {
    options.observe.sites = sites_of(edits, loaded);
    options.observe.progress = progress;
    options.remark = warn;
  }
};

std::vector<HeadPattern> patterns_of(const Names& heads) {
  std::vector<HeadPattern> patterns;
  for (const std::string& head : heads) patterns.emplace_back(head);
  return patterns;
}

/// Opens the corpus for an analysis that has arguments of its own.
template <class... Own>
auto on_corpus(std::string (*analysis)(const Reading&, HeadsCorpus&, Own...)) {
  return [analysis](const LoadedModel& loaded, const Corpus& corpus, const std::string& settings,
                    Edits* edits, const Progress& progress, Own... own) {
    return long_call([&] {
      const std::unique_ptr<HeadsCorpus> opened = corpus.open();
      return analysis(Reading{loaded, corpus, settings, edits, progress}, *opened, own...);
    });
  };
}

std::string stats(const Reading& reading, HeadsCorpus& corpus) {
  auto options = settings_of<ObserveHeadsOptions>(reading.settings, "stats");
  reading.attach(options);
  return with_options(
      stats_json(heads_stats(reading.loaded.folder(), corpus, options), reading.loaded.path()), "stats",
      options, reading.loaded.precision());
}

std::string relations(const Reading& reading, HeadsCorpus& corpus, bool random) {
  auto options = settings_of<RelationsOptions>(reading.settings, "relations");
  reading.attach(options.observe);
  options.random = random;
  return with_options(
      relations_json(heads_relations(reading.loaded.folder(), corpus, options), reading.loaded.path()),
      "relations", options, reading.loaded.precision());
}

std::string alignment(const Reading& reading, HeadsCorpus& corpus, bool gold, int64_t pairs) {
  auto options = settings_of<ObserveHeadsOptions>(reading.settings, "alignment");
  reading.attach(options);
  const ModelFolder& folder = reading.loaded.folder();
  const AlignmentReport found =
      gold ? heads_alignment(folder, corpus, options)
           : heads_alignment_without_gold(folder, corpus, {.read = options, .pairs = pairs});
  return with_options(alignment_json(found, reading.loaded.path()), "alignment", options,
                      reading.loaded.precision());
}

std::string similar(const Reading& reading, HeadsCorpus& corpus) {
  auto options = settings_of<SimilarOptions>(reading.settings, "similar");
  reading.attach(options.observe);
  return with_options(
      similar_json(heads_similar(reading.loaded.folder(), corpus, options), reading.loaded.path()), "similar",
      options, reading.loaded.precision());
}

std::string compare(const Reading& reading, HeadsCorpus& corpus, const LoadedModel& after) {
  auto options = settings_of<CompareOptions>(reading.settings, "compare");
  reading.attach(options.observe);
  return with_options(compare_json(heads_compare(reading.loaded.folder(), after.folder(), corpus, options),
                                   reading.loaded.path()),
                      "compare", options, reading.loaded.precision());
}

std::string where(const Reading& reading, HeadsCorpus& corpus, const Names& heads) {
  auto settings = settings_of<WhereOptions>(reading.settings, "where");
  reading.attach(settings.read);
  settings.evidence.heads = patterns_of(heads);
  return with_options(
      where_json(heads_where(reading.loaded.folder(), corpus, settings), reading.loaded.path()), "where",
      settings, reading.loaded.precision());
}

std::string importance(const Reading& reading, HeadsCorpus& corpus) {
  auto settings = settings_of<ImportanceSettings>(reading.settings, "importance");
  reading.attach(settings.importance.texts.read);
  const ScoredModel& model = reading.loaded.scored();
  const std::string& path = reading.loaded.path();
  return with_options(
      settings.curve
          ? importance_json(pruning_curve(model, corpus, settings.importance, settings.steps), path)
          : importance_json(heads_importance(model, corpus, settings.importance), path),
      "importance", settings, reading.loaded.precision());
}

void refuse_edits(Edits* edits, const LoadedModel& loaded) {
  if (sites_of(edits, loaded) != nullptr)
    throw UsageError("attributions are made of unchanged models; leave the `with` block");
}

std::string faithful(const Reading& reading, HeadsCorpus& corpus, bool of_pairs) {
  refuse_edits(reading.edits, reading.loaded);
  auto options = settings_of<FaithfulnessOptions>(reading.settings, "faithfulness");
  options.attribution.remark = warn;
  options.progress = reading.progress;
  return with_options(faithfulness_json(of_pairs ? faithfulness(reading.loaded.sentences(), corpus, options)
                                                 : faithfulness(reading.loaded.folder(), corpus, options),
                                        reading.loaded.path()),
                      "attribution", options, reading.loaded.precision());
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
                  std::optional<int> token, const std::string& arguments, Edits* edits,
                  const Progress& progress) {
  const PatchQuestion question{.clean = clean,
                               .corrupt = corrupt,
                               .answer = answer,
                               .wrong = wrong,
                               .prefix = prefix,
                               .position = token};
  auto options = settings_of<PatchOptions>(arguments, "patch");
  options.remark = warn;
  if (progress) options.progress = [&](int64_t done, int64_t) { progress(done); };
  return long_call([&] {
    options.sites = sites_of(edits, loaded);
    return with_options(
        patch_json(loaded.folder().gives_vectors_alone() ? heads_patch(loaded.sentences(), question, options)
                                                         : heads_patch(loaded.folder(), question, options),
                   loaded.path()),
        "patch", options, loaded.precision());
  });
}

std::string attribution(const LoadedModel& loaded, const std::string& text, const std::string& second,
                        const std::string& pair, std::optional<int> position, const std::string& target_token,
                        const std::string& label, const std::string& target, const std::string& arguments,
                        Edits* edits) {
  refuse_edits(edits, loaded);
  auto options = settings_of<AttributionOptions>(arguments, "attribution");
  options.position = position;
  options.target_token = target_token;
  options.label = label;
  options.pair = pair;
  options.target = target;
  options.remark = warn;
  return long_call([&] {
    return with_options(
        attribution_json(second.empty() ? heads_attribution(loaded.folder(), text, options)
                                        : heads_attribution(loaded.sentences(), text, second, options),
                         loaded.path(), text),
        "attribution", options, loaded.precision());
  });
}

std::string lens(const LoadedModel& loaded, const std::string& text, const std::string& answer,
                 std::optional<int> position, const std::string& target, const std::string& pair,
                 const std::string& second, const std::string& arguments, Edits* edits) {
  auto options = settings_of<LensOptions>(arguments, "lens");
  options.answer = answer;
  options.position = position;
  options.target = target;
  options.pair = pair;
  options.remark = warn;
  return long_call([&] {
    options.sites = sites_of(edits, loaded);
    return with_options(lens_json(heads_lens(loaded.scored(), text, second, options), loaded.path()), "lens",
                        options, loaded.precision());
  });
}

/// needles: of each a sentence, a question and its answer; none, and no filler: those of the library.
std::string retrieval(const LoadedModel& loaded, const std::optional<std::vector<Names>>& needles,
                      const std::optional<std::string>& filler, std::vector<int32_t> lengths,
                      std::vector<double> depths, const std::string& arguments, Edits* edits,
                      const Progress& progress) {
  auto options = settings_of<RetrievalOptions>(arguments, "retrieval");
  options.lengths = std::move(lengths);
  options.depths = std::move(depths);
  if (progress) options.progress = [&](int64_t done, int64_t) { progress(done); };
  RetrievalTexts texts;
  if (filler) texts.filler = *filler;
  if (needles) texts.needles.clear();
  for (const Names& one : needles.value_or(std::vector<Names>())) {
    if (one.size() != 3)
      throw UsageError("`needles`: expected a sentence, a question and its answer for each");
    texts.needles.push_back({.sentence = one[0], .question = one[1], .answer = one[2]});
  }
  return long_call([&] {
    options.sites = sites_of(edits, loaded);
    return with_options(retrieval_json(heads_retrieval(loaded.folder(), texts, options), loaded.path()),
                        "retrieval", options, loaded.precision());
  });
}

template <class Questions>
std::string contributions_report(const LoadedModel& loaded, const Questions& questions,
                                 ContributionOptions options, Edits* edits) {
  options.remark = warn;
  return long_call([&] {
    options.sites = sites_of(edits, loaded);
    return with_options(contributions_json(loaded.folder().gives_vectors_alone()
                                               ? heads_contributions(loaded.sentences(), questions, options)
                                               : heads_contributions(loaded.folder(), questions, options),
                                           loaded.path()),
                        "contributions", options, loaded.precision());
  });
}

std::string contributions(const LoadedModel& loaded, const std::string& text, const std::string& answer,
                          const std::string& wrong, const std::string& prefix, std::optional<int> token,
                          const std::string& arguments, Edits* edits) {
  const AnswerQuestion question{
      .text = text, .answer = answer, .wrong = wrong, .prefix = prefix, .position = token};
  return contributions_report(loaded, question, settings_of<ContributionOptions>(arguments, "contributions"),
                              edits);
}

/// questions: of each text, its answer and a wrong one, either of which may be empty.
std::string mean_contributions(const LoadedModel& loaded, const std::vector<Names>& questions,
                               const std::string& prefix, std::optional<int> token,
                               const std::string& arguments, Edits* edits, const Progress& progress) {
  std::vector<AnswerQuestion> all;
  for (const Names& one : questions)
    all.push_back(
        {.text = one.at(0), .answer = one.at(1), .wrong = one.at(2), .prefix = prefix, .position = token});
  auto options = settings_of<ContributionOptions>(arguments, "contributions");
  options.sources = 0;
  options.progress = progress;
  return contributions_report(loaded, std::span<const AnswerQuestion>(all), std::move(options), edits);
}

/// pairs: of each the clean text, the corrupt one, the answer, the wrong one and the prefix. svg: the file of a picture; empty: none.
std::string circuit(const LoadedModel& loaded, const std::vector<Names>& pairs, std::optional<int> token,
                    const std::string& svg, const std::string& arguments, Edits* edits,
                    const Progress& progress) {
  std::vector<PatchQuestion> all;
  for (const Names& pair : pairs) {
    all.push_back({.clean = pair.at(0),
                   .corrupt = pair.at(1),
                   .answer = pair.at(2),
                   .wrong = pair.at(3),
                   .prefix = pair.at(4),
                   .position = token});
  }
  auto options = settings_of<CircuitOptions>(arguments, "circuit");
  options.remark = warn;
  int64_t runs = 0;
  if (progress) options.progress = [&](const CircuitProgress&) { progress(++runs); };
  return long_call([&] {
    options.sites = sites_of(edits, loaded);
    const CircuitReport found = heads_circuit(loaded.scored(), all, options);
    if (!svg.empty()) write_file_atomically(svg, draw_circuit(found));
    return with_options(circuit_json(found, loaded.path()), "circuit", options, loaded.precision());
  });
}

}  // namespace

void add_analyses(nb::class_<LoadedModel>& model) {
  using namespace nb::literals;
  const auto add = [&](const char* name, auto analysis, const auto&... own) {
    model.def(name, on_corpus(analysis), "corpus"_a, nb::kw_only(), "settings"_a, "edits"_a.none(),
              "progress"_a.none(), own...);
  };
  add("stats", stats);
  add("relations", relations, "random"_a);
  add("alignment", alignment, "gold"_a, "pairs"_a);
  add("similar", similar);
  add("compare", compare, "after"_a);
  add("where", where, "heads"_a);
  add("importance", importance);
  add("faithfulness", faithful, "of_pairs"_a);
  model.def("circuits", circuits, nb::kw_only(), "compositions"_a, "settings"_a)
      .def("patch", patch, nb::kw_only(), "clean"_a, "corrupt"_a, "answer"_a, "wrong"_a, "prefix"_a,
           "token"_a.none(), "settings"_a, "edits"_a.none(), "progress"_a.none())
      .def("attribution", attribution, "text"_a, nb::kw_only(), "second"_a, "pair"_a, "position"_a.none(),
           "target_token"_a, "label"_a, "target"_a, "settings"_a, "edits"_a.none())
      .def("contributions", contributions, "text"_a, nb::kw_only(), "answer"_a, "wrong"_a, "prefix"_a,
           "token"_a.none(), "settings"_a, "edits"_a.none())
      .def("mean_contributions", mean_contributions, "questions"_a, nb::kw_only(), "prefix"_a,
           "token"_a.none(), "settings"_a, "edits"_a.none(), "progress"_a.none())
      .def("circuit", circuit, "pairs"_a, nb::kw_only(), "token"_a.none(), "svg"_a, "settings"_a,
           "edits"_a.none(), "progress"_a.none())
      .def("lens", lens, "text"_a, nb::kw_only(), "answer"_a, "position"_a.none(), "target"_a, "pair"_a,
           "second"_a, "settings"_a, "edits"_a.none())
      .def("retrieval", retrieval, nb::kw_only(), "needles"_a.none(), "filler"_a.none(), "lengths"_a,
           "depths"_a, "settings"_a, "edits"_a.none(), "progress"_a.none());
}

}  // namespace mh::python
