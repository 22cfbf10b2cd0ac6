// What a model has inside while it reads a text.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <optional>
#include <utility>

#include "arrays.h"
#include "call.h"
#include "given_text.h"
#include "model.h"
#include "multihead/heads/sites/observe_text.h"
#include "multihead/heads/sites/site_pattern.h"

namespace mh::python {
namespace {

/// An observation, and the sites that were kept.
struct Seen {
  Observation observation;
  std::vector<std::string> sites;
};

/// The name of a language; none: the folder says it.
using Language = std::optional<std::string>;

std::unique_ptr<Seen> observe(const LoadedModel& loaded, const GivenText& text, const std::string& target,
                              const std::optional<std::string>& pair, const Language& source_language,
                              const Language& target_language, const std::vector<std::string>& sites,
                              Edits* edits) {
  return long_call([&] {
    Sites* changed = sites_of(edits, loaded);
    auto seen = std::make_unique<Seen>();
    seen->observation = observe_given(loaded, text, target,
                                      {.keep = sites,
                                       .sites = changed,
                                       .remark = warn,
                                       .pair = pair,
                                       .languages = {source_language, target_language}});
    seen->sites = sites_named(loaded.model().sites(), sites);
    return seen;
  });
}

/// Of some texts of a list, of which the first is its text `first`.
std::vector<std::unique_ptr<Seen>> observe_all(const LoadedModel& loaded, const std::vector<GivenText>& texts,
                                               int64_t first, const Language& source_language,
                                               const Language& target_language,
                                               const std::vector<std::string>& sites, Edits* edits) {
  return long_call([&] {
    Sites* changed = sites_of(edits, loaded);
    const std::vector<std::string> names = sites_named(loaded.model().sites(), sites);
    std::vector<std::unique_ptr<Seen>> all;
    for (Observation& seen :
         observe_each(loaded, texts, {}, first,
                      {.keep = sites, .sites = changed, .languages = {source_language, target_language}})) {
      all.push_back(std::make_unique<Seen>());
      all.back()->observation = std::move(seen);
      all.back()->sites = names;
    }
    return all;
  });
}

/// Throws UsageError on a name or pattern that no site of the model fits.
void check_sites(const LoadedModel& loaded, const std::vector<std::string>& patterns) {
  SiteValues asked;
  for (const std::string& pattern : patterns) asked.keep(pattern);
  loaded.model().check(asked);
}

/// The value of a site; of scores and weights the keys of the text alone.
NumpyConstFloats value_of(const Seen& seen, const std::string& site) {
  return numpy_view(seen.observation.values.kept(site).sequence(0), nb::find(seen));
}

const std::vector<std::string>& labels(const Seen& seen, const std::string& attention, bool of_keys) {
  const AttentionKind kind = seen.observation.place(attention).kind;
  return of_keys ? seen.observation.key_labels(kind) : seen.observation.query_labels(kind);
}

}  // namespace

void add_observation(nb::module_& module, nb::class_<LoadedModel>& model) {
  using namespace nb::literals;
  nb::class_<Seen>(module, "Seen")
      .def_prop_ro("source", [](const Seen& seen) { return seen.observation.source.labels; })
      .def_prop_ro("target", [](const Seen& seen) { return seen.observation.target.labels; })
      .def_prop_ro("predicted", [](const Seen& seen) { return seen.observation.predicted.labels; })
      .def_prop_ro("translation", [](const Seen& seen) { return seen.observation.translation; })
      .def_ro("sites", &Seen::sites)
      .def("labels", labels, "attention"_a, "of_keys"_a)
      .def("value", value_of, "site"_a);
  model
      .def("observe", observe, "text"_a, nb::kw_only(), "target"_a, "pair"_a.none(),
           "source_language"_a.none(), "target_language"_a.none(), "sites"_a, "edits"_a.none())
      .def("check_sites", check_sites, "sites"_a)
      .def("observe_all", observe_all, "texts"_a, nb::kw_only(), "first"_a, "source_language"_a.none(),
           "target_language"_a.none(), "sites"_a, "edits"_a.none());
}

}  // namespace mh::python
