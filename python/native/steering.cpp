// Directions: made of texts, in files, added by edits, and what they do.
#include <nanobind/stl/function.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "arrays.h"
#include "call.h"
#include "corpus.h"
#include "model.h"
#include "multihead/base/file.h"
#include "multihead/heads/reports/report_options.h"
#include "multihead/heads/reports/steer_json.h"
#include "settings.h"

namespace mh::python {
namespace {

using Progress = std::function<void(int64_t)>;

/// The lines that have words.
std::vector<std::string> texts_of(const Corpus& corpus) {
  std::vector<std::string> texts;
  const std::unique_ptr<HeadsCorpus> opened = corpus.open();
  for (HeadsText block = opened->next(); !block.sources.empty(); block = opened->next()) {
    for (std::string& line : block.sources) {
      if (line.find_first_not_of(" \t\r") != std::string::npos) texts.push_back(std::move(line));
    }
  }
  return texts;
}

SteerDirection direction(const LoadedModel& loaded, const Corpus& toward, const Corpus* away,
                         const std::string& site, std::optional<int> head, const std::string& at,
                         const std::string& arguments, Edits* edits, const Progress& progress) {
  auto options = settings_of<DirectionOptions>(arguments, "direction");
  options.remark = warn;
  options.progress = progress;
  return long_call([&] {
    options.sites = sites_of(edits, loaded);
    return make_direction(loaded.folder(),
                          {.toward = texts_of(toward),
                           .away = away != nullptr ? texts_of(*away) : std::vector<std::string>(),
                           .site = site,
                           .head = head,
                           .at = at},
                          options);
  });
}

std::string steer(const LoadedModel& loaded, const SteerDirection& added, std::vector<std::string> texts,
                  std::vector<std::string> answers, const std::string& prefix, const Corpus* other,
                  std::vector<double> strengths, const std::string& arguments, Edits* edits,
                  const Progress& progress) {
  auto options = settings_of<SteerOptions>(arguments, "steer");
  options.strengths = std::move(strengths);
  options.direction.remark = warn;
  if (progress) options.progress = [&](int64_t done, int64_t) { progress(done); };
  return long_call([&] {
    options.direction.sites = sites_of(edits, loaded);
    check_direction(added, loaded.model(), loaded.weights());
    const std::unique_ptr<HeadsCorpus> opened = other != nullptr ? other->open() : nullptr;
    const SteerReport found = heads_steer(
        loaded.unscored(), added,
        {.texts = std::move(texts), .answers = std::move(answers), .prefix = prefix}, opened.get(), options);
    return with_options(steer_json(found, loaded.path()), "steer", options, loaded.precision());
  });
}

}  // namespace

void add_steering(nb::module_& module, nb::class_<LoadedModel>& model) {
  using namespace nb::literals;
  nb::class_<SteerDirection>(module, "Direction")
      .def_ro("site", &SteerDirection::site)
      .def_ro("head", &SteerDirection::head)
      .def_ro("made", &SteerDirection::made)
      .def_ro("weights", &SteerDirection::weights)
      .def_ro("row_length", &SteerDirection::row_length)
      .def_prop_ro("length", &SteerDirection::length)
      .def("numbers",
           [](const SteerDirection& made) { return numpy_of(made.numbers, {made.numbers.size()}); })
      .def(
          "save",
          [](const SteerDirection& made, const std::string& path) {
            write_file_atomically(path, direction_file(made));
          },
          "path"_a);
  module.def(
      "read_direction", [](const std::string& path) { return read_direction(path); }, "path"_a);
  model
      .def("direction", direction, "toward"_a, nb::kw_only(), "away"_a.none(), "site"_a, "head"_a.none(),
           "at"_a, "settings"_a, "edits"_a.none(), "progress"_a.none())
      .def("steer", steer, "direction"_a, nb::kw_only(), "texts"_a, "answers"_a, "prefix"_a, "other"_a.none(),
           "strengths"_a, "settings"_a, "edits"_a.none(), "progress"_a.none());
}

}  // namespace mh::python
