// The page of heads.
#include <nanobind/stl/function.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <fmt/format.h>

#include <functional>
#include <memory>
#include <utility>

#include "call.h"
#include "corpus.h"
#include "model.h"
#include "multihead/base/file.h"
#include "multihead/heads/reports/page/live_model.h"
#include "multihead/heads/reports/page/page_run.h"
#include "settings.h"

namespace mh::python {
namespace {

using Lines = std::vector<std::string>;
using GivenReport =
    std::pair<std::string, std::string>;  // its JSON, and its name; without JSON the name is a file's

PageReport report_of(const GivenReport& given) {
  const auto& [json, name] = given;
  return {.json = json.empty() && !name.empty() ? read_file(name) : json, .name = name};
}

/// (the page, the head that it opens at in words).
std::pair<std::string, std::string> view(const LoadedModel& loaded, const Lines& texts, const Lines& targets,
                                         const Corpus* corpus, const std::string& name,
                                         const std::string& command, const std::string& settings,
                                         const GivenReport& circuit, const GivenReport& retrieval,
                                         const GivenReport& aligners, Edits* edits,
                                         const std::function<void(int64_t)>& progress) {
  if (texts.empty()) throw UsageError("`texts`: give a text to look at");
  if (!targets.empty() && targets.size() != texts.size())
    throw UsageError(
        fmt::format("`target`: expected one for each of {} texts, got {}", texts.size(), targets.size()));
  return long_call([&] {
    ViewSettings shown = settings_of<ViewSettings>(settings, "view");
    shown.page.command = command;
    const std::string& head = shown.page.head;
    if (!head.empty()) loaded.model().heads_named(HeadPattern(head));
    std::vector<PageText> read;
    for (size_t i = 0; i < texts.size(); ++i)
      read.push_back({.source = texts[i], .target = targets.empty() ? std::string() : targets[i]});
    const std::unique_ptr<HeadsCorpus> opened = corpus != nullptr ? corpus->open() : nullptr;
    PageRunOptions& run = shown.run;
    run.name = name;
    run.model = loaded.path();
    run.corpus = opened.get();
    run.relations =
        corpus != nullptr && !(corpus->files.conllu.empty() && corpus->files.target_conllu.empty());
    run.alignment = corpus != nullptr && !corpus->files.alignment.empty();
    run.circuit = report_of(circuit);
    run.retrieval = report_of(retrieval);
    run.aligners = report_of(aligners);
    run.sites = sites_of(edits, loaded);
    run.remark = warn;
    run.progress = progress;
    const LiveOptions& live = shown.live;
    if (live.weights != LiveNumbers::kFile && !live.live)
      throw UsageError("`live_weights` is how a page holds its model; give `live=True`, too");
    if (live.live && run.sites != nullptr)
      throw UsageError("`live`: the reader changes heads on the page; leave out what changes them here");
    HeadsPage page(shown.page);
    const ScoredModel& model = run.importance || live.live ? loaded.scored() : loaded.unscored();
    page.add_run(page_run(model, read, run), read);
    if (live.live)
      page.add_live(live_elements(model, read,
                                  {.name = name, .weights = live.weights, .page = shown.page, .run = run}));
    return std::pair(page.html(), page.title());
  });
}

}  // namespace

void add_view(nb::module_& module, nb::class_<LoadedModel>& model) {
  using namespace nb::literals;
  module.def(
      "write_file",
      [](const std::string& path, const std::string& text) {
        long_call([&] { write_file_atomically(path, text); });
      },
      "path"_a, "text"_a);
  model.def("view", view, "texts"_a, nb::kw_only(), "targets"_a, "corpus"_a.none(), "name"_a, "command"_a,
            "settings"_a, "circuit"_a, "retrieval"_a, "aligners"_a, "edits"_a.none(), "progress"_a.none());
}

}  // namespace mh::python
