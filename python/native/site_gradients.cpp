// Gradients of linear functions of the values at a site, for many texts.
#include "multihead/heads/sites/site_gradients.h"

#include <fmt/format.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <optional>
#include <tuple>
#include <utility>

#include "arrays.h"
#include "call.h"
#include "given_text.h"
#include "model.h"
#include "multihead/base/error.h"

namespace mh::python {
namespace {

/// Of a text: the row that is meant, the columns that numbers are of (none: all), and the numbers.
using Along = std::tuple<std::optional<int64_t>, std::vector<int32_t>, nb::object>;

SiteSum sum_of(const Along& given) {
  const auto& [position, columns, numbers] = given;
  FloatArray array(numbers, "along");
  if (array.dimensions() < 1 || array.dimensions() > 2)
    throw ShapeError(
        fmt::format("`along`: expected [columns] or [rows, columns] for a text, got {}", array.shape_text()));
  const ConstMatrixView rows = array.dimensions() == 1 ? array.matrix({0}, 1) : array.matrix({0, 1}, 1);
  return {.position = position, .columns = columns, .along = copied(rows)};
}

/// As of Model.gradient.
using Found = std::tuple<double, std::vector<std::string>, std::vector<std::string>, std::vector<std::string>,
                         std::vector<std::pair<std::string, NumpyFloats>>>;

std::vector<Found> site_gradients_of(const LoadedModel& loaded, const std::vector<GivenText>& texts,
                                     const std::string& of, std::optional<int> head,
                                     const std::vector<Along>& along, const std::vector<std::string>& at,
                                     const std::vector<std::string>& targets,
                                     const std::optional<std::string>& pair,
                                     const std::optional<std::string>& source_language,
                                     const std::optional<std::string>& target_language, Edits* edits) {
  std::vector<SiteSum> sums;
  for (const Along& one : along) sums.push_back(sum_of(one));
  std::vector<Observation> read;
  std::vector<SiteGradients> gradients = long_call([&] {
    Sites* changed = sites_of(edits, loaded);
    read = observe_each(loaded, texts, targets, 0,
                        {.tokens_alone = true,
                         .sites = changed,
                         .pair = pair,
                         .languages = {source_language, target_language}});
    return site_gradients(loaded.model(), read, {.of = of, .head = head, .at = at}, sums, changed);
  });
  std::vector<Found> found;
  for (size_t i = 0; i < gradients.size(); ++i) {
    std::vector<std::pair<std::string, NumpyFloats>> arrays;
    for (auto& [name, numbers] : gradients[i].gradients) {
      const std::vector<int64_t> shape{numbers.rows(), numbers.cols()};
      arrays.emplace_back(name, numpy_of(std::move(numbers), shape));
    }
    found.emplace_back(gradients[i].value, std::move(read[i].source.labels), std::move(read[i].target.labels),
                       std::move(read[i].predicted.labels), std::move(arrays));
  }
  return found;
}

}  // namespace

void add_site_gradients(nb::class_<LoadedModel>& model) {
  using namespace nb::literals;
  model.def("site_gradients", site_gradients_of, "texts"_a, nb::kw_only(), "of"_a, "head"_a.none(), "along"_a,
            "at"_a, "targets"_a, "pair"_a.none(), "source_language"_a.none(), "target_language"_a.none(),
            "edits"_a.none());
}

}  // namespace mh::python
