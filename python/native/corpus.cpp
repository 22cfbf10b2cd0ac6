#include "corpus.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <utility>

#include "module_parts.h"
#include "multihead/base/error.h"

namespace mh::python {

namespace nb = nanobind;

std::unique_ptr<HeadsCorpus> Corpus::open() const {
  if (!targets && !pairs) return std::make_unique<FilesCorpus>(files);
  if (!files.lines)
    throw UsageError(
        "translations or second texts in memory belong to texts in memory; give all as lists, or all as "
        "files");
  for (const std::string* file :
       {&files.target, &files.pairs, &files.conllu, &files.target_conllu, &files.alignment}) {
    if (!file->empty())
      throw UsageError("translations or second texts in memory cannot be beside files; give all as files");
  }
  return std::make_unique<TextCorpus>(HeadsText{
      .sources = *files.lines, .targets = targets.value_or(Lines()), .pairs = pairs.value_or(Lines())});
}

void add_corpus(nb::module_& module) {
  using namespace nb::literals;
  nb::class_<Corpus>(module, "Corpus")
      .def(
          "__init__",
          [](Corpus* made, std::optional<Corpus::Lines> lines, std::optional<Corpus::Lines> targets,
             std::optional<Corpus::Lines> pairs, std::string input, std::string target_file,
             std::string pair_file, std::string conllu, std::string target_conllu, std::string alignment) {
            new (made) Corpus{.targets = std::move(targets),
                              .pairs = std::move(pairs),
                              .files = {.input = std::move(input),
                                        .lines = std::move(lines),
                                        .name = "the text",
                                        .target = std::move(target_file),
                                        .pairs = std::move(pair_file),
                                        .conllu = std::move(conllu),
                                        .target_conllu = std::move(target_conllu),
                                        .alignment = std::move(alignment)}};
          },
          nb::kw_only(), "lines"_a.none(), "targets"_a.none(), "pairs"_a.none(), "input"_a, "target_file"_a,
          "pair_file"_a, "conllu"_a, "target_conllu"_a, "alignment"_a);
}

}  // namespace mh::python
