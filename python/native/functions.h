// SiteFunctions: functions of Python that are shown a model's values at sites, and may give others back.
#pragma once

#include <nanobind/nanobind.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "multihead/heads/sites/site_pattern.h"
#include "multihead/nn/sites.h"

namespace mh::python {

namespace nb = nanobind;

/// For any number of passes at once; calls take Python's lock.
class SiteFunctions final : public Sites {
 public:
  /// A function of an array float32 [rows, columns], the rows of the batch, which it may change. It returns what the model goes on with,
  /// of the same shape, or None: the array as it is then. pattern: a site's name, or * for any characters.
  void add(const std::string& pattern, nb::object function);
  bool empty() const { return functions_.empty(); }
  /// A line for each function that no pass has called yet.
  std::vector<std::string> unread() const;

  bool wants(const Site& site) const override;
  /// Throws what the function raises, ShapeError on another shape, and UsageError on numbers that are not finite.
  Var at(Tape& tape, const Site& site, const SiteValue& value) override;
  std::vector<std::string> sites_asked() const override;
  bool changes() const override { return !empty(); }

 private:
  struct Function {
    SitePattern where;
    nb::object call;
    std::unique_ptr<std::atomic<bool>> met = std::make_unique<std::atomic<bool>>(false);
  };
  std::vector<Function> functions_;
};

}  // namespace mh::python
