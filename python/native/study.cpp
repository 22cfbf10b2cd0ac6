// The five questions, answered by running.
#include <nanobind/nanobind.h>
#include <nanobind/stl/function.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "call.h"
#include "lab/studies/arms.h"
#include "lab/studies/report.h"
#include "lab/studies/study.h"
#include "module_parts.h"
#include "multihead/io/config.h"
#include "names.h"

namespace mh::python {
namespace {

using Names = std::vector<std::string>;

/// (name, question) of every study.
std::vector<std::pair<std::string, std::string>> list() {
  std::vector<std::pair<std::string, std::string>> all;
  for (const Study& study : studies()) all.emplace_back(study.name, study.question);
  return all;
}

/// The report as JSON, and its plots: (name, SVG).
using Found = std::pair<std::string, std::vector<std::pair<std::string, std::string>>>;

Found run(const std::string& name, const Names& claims, const std::string& size, const std::string& runs,
          const std::string& data, const std::string& checkpoint,
          const std::function<void(const std::string&)>& on_step) {
  const Study& study = find_study(name);
  const StudySize wanted = value_named(size, kSizeNames, "size");
  return stoppable_call([&](PendingSignal& signal) -> Found {
    const auto stop = [&] { return signal.came(); };
    ArmRunner runner({.size = wanted,
                      .data = data,
                      .checkpoint = checkpoint,
                      .runs = runs,
                      .watcher = {.step = on_step, .stop = stop}});
    const StudyReport report = run_study(study, runner, claims, {.step = on_step, .stop = stop});
    const MarkdownReport page = report_as_markdown(report);
    return {to_json(report), {page.plots.begin(), page.plots.end()}};
  });
}

}  // namespace

void add_study(nb::module_& module) {
  using namespace nb::literals;
  module.def("studies", list);
  module.def("study", run, "name"_a, nb::kw_only(), "claims"_a, "size"_a, "runs"_a, "data"_a, "checkpoint"_a,
             "on_step"_a);
}

}  // namespace mh::python
