// What the library says of the settings of analyses.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <string>
#include <vector>

#include "module_parts.h"
#include "multihead/base/error.h"
#include "multihead/heads/importance/pruning_curve.h"
#include "multihead/io/describe_settings.h"

namespace mh::python {
namespace {

struct Described {
  std::vector<SettingDescription> settings;
  template <class V>
  void visit(V& v) {
    v("settings", settings);
  }
};

std::string settings(const std::string& verb) {
  if (verb != "importance") throw UsageError("no settings of `multihead heads " + verb + "` are described");
  return to_json(Described{describe_settings(ImportanceSettings())});
}

}  // namespace

void add_settings(nanobind::module_& module) {
  module.def("settings", settings, nanobind::arg("verb"));
}

}  // namespace mh::python
