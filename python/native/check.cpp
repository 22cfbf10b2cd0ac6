// Whether a model is computed right.
#include <fmt/format.h>
#include <nanobind/stl/function.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include <filesystem>
#include <functional>
#include <string>

#include "call.h"
#include "model.h"
#include "multihead/check/check_json.h"
#include "multihead/check/check_model.h"
#include "multihead/kernels/product_kernels.h"
#include "settings.h"

namespace mh::python {
namespace {

using Ask = std::function<void(const std::string& request, const std::string& answer)>;

/// The report, as JSON.
std::string check(const LoadedModel& loaded, const std::string& settings, const Ask& ask) {
  if (!loaded.removed().empty())
    throw UsageError(
        "heads of this model were removed, and transformers would read all of them; check the whole model");
  if (loaded.precision().contract != Precision::kSame)
    throw UsageError(
        fmt::format("the tolerance is one of precision \"same\", and this model was loaded with \"{}\"; load "
                    "it again without",
                    precision_name(loaded.precision())));
  return long_call([&] {
    const CheckReport report =
        check_model(loaded.folder(), settings_of<CheckOptions>(settings, "check"),
                    [&](const std::filesystem::path& request, const std::filesystem::path& answer) {
                      ask(request.string(), answer.string());
                    });
    for (const std::string& remark : report.remarks) warn(remark);
    return check_json(report, loaded.path());
  });
}

}  // namespace

void add_check(nb::module_& module, nb::class_<LoadedModel>& model) {
  using namespace nb::literals;
  module.def("site_oracle", site_oracle);
  model.def("check", check, nb::kw_only(), "settings"_a, "ask"_a);
}

}  // namespace mh::python
