#include "functions.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "arrays.h"
#include "multihead/base/error.h"
#include "multihead/base/finite.h"

namespace mh::python {

void SiteFunctions::add(const std::string& pattern, nb::object function) {
  functions_.push_back({SitePattern(pattern), std::move(function)});
}

std::vector<std::string> SiteFunctions::unread() const {
  std::vector<std::string> lines;
  for (const Function& one : functions_) {
    if (!*one.met) lines.push_back(fmt::format("nothing called the function of site '{}'", one.where.text()));
  }
  return lines;
}

bool SiteFunctions::wants(const Site& site) const {
  SiteName name(site);
  for (const Function& one : functions_) {
    if (one.where.fits(name)) return true;
  }
  return false;
}

Var SiteFunctions::at(Tape& tape, const Site& site, const SiteValue& value) {
  SiteName name(site);
  Var now = value.value;
  for (const Function& one : functions_) {
    if (!one.where.fits(name)) continue;
    *one.met = true;
    const MatrixView given = tape.arena().matrix<float>(now.rows(), now.cols());
    {
      const nb::gil_scoped_acquire locked;
      nb::object array = nb::cast(numpy_copy(now.value()));
      nb::object found = one.call(array);
      FloatArray numbers(found.is_none() ? array : found, "replace");
      if (numbers.shape() != std::vector<int64_t>{given.rows, given.cols})
        throw ShapeError(fmt::format("`replace`: the function of site '{}' gave {}, expected [{}, {}]",
                                     name.text(), numbers.shape_text(), given.rows, given.cols));
      const ConstMatrixView rows = numbers.matrix({0, 1}, 1);
      for (int64_t i = 0; i < given.rows; ++i) std::copy_n(rows.row(i), given.cols, given.row(i));
    }
    if (!all_finite(given))
      throw UsageError(
          fmt::format("`replace`: the function of site '{}' gave numbers that are not finite", name.text()));
    now = tape.constant(given);
  }
  return now;
}

std::vector<std::string> SiteFunctions::sites_asked() const {
  std::vector<std::string> patterns;
  for (const Function& one : functions_) patterns.push_back(one.where.text());
  return patterns;
}

}  // namespace mh::python
