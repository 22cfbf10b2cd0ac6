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
#include "multihead/heads/reports/page/page_run.h"

namespace mh::python {
namespace {

using Lines = std::vector<std::string>;

/// (the page, the head that it opens at in words).
std::pair<std::string, std::string> view(const LoadedModel& loaded, const Lines& texts, const Lines& targets,
                                         const Corpus* corpus, const std::string& name,
                                         const std::string& command, const std::string& head,
                                         const std::string& walk, bool importance, Edits* edits,
                                         const std::function<void(int64_t)>& progress) {
  if (texts.empty()) throw UsageError("`texts`: give a text to look at");
  if (!targets.empty() && targets.size() != texts.size())
    throw UsageError(
        fmt::format("`target`: expected one for each of {} texts, got {}", texts.size(), targets.size()));
  return long_call([&] {
    Sites* sites = sites_of(edits, loaded);
    if (!head.empty()) loaded.model().heads_named(HeadPattern(head));
    std::vector<PageText> read;
    for (size_t i = 0; i < texts.size(); ++i)
      read.push_back({.source = texts[i], .target = targets.empty() ? std::string() : targets[i]});
    const std::unique_ptr<HeadsCorpus> opened = corpus != nullptr ? corpus->open() : nullptr;
    HeadsPage page({.command = command, .head = head});
    const bool trees =
        corpus != nullptr && !(corpus->files.conllu.empty() && corpus->files.target_conllu.empty());
    page.add_run(page_run(importance ? loaded.scored() : loaded.unscored(), read,
                          {.name = name,
                           .model = loaded.path(),
                           .corpus = opened.get(),
                           .relations = trees,
                           .alignment = corpus != nullptr && !corpus->files.alignment.empty(),
                           .importance = importance,
                           .walk = walk,
                           .sites = sites,
                           .remark = warn,
                           .progress = progress}),
                 read);
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
            "head"_a, "walk"_a, "importance"_a, "edits"_a.none(), "progress"_a.none());
}

}  // namespace mh::python
