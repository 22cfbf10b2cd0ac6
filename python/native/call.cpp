#include "call.h"

#include <nanobind/stl/string.h>

namespace mh::python {

bool PendingSignal::came() {
  if (raised_) return true;
  const nb::gil_scoped_acquire locked;
  if (PyErr_CheckSignals() == 0) return false;
  raised_ = std::make_exception_ptr(nb::python_error());
  return true;
}

void PendingSignal::keep(const nb::python_error& raised) {
  if (!raised.matches(PyExc_KeyboardInterrupt)) throw;
  raised_ = std::current_exception();
}

void PendingSignal::rethrow() const {
  if (raised_) std::rethrow_exception(raised_);
}

void warn(const std::string& line) {
  const nb::gil_scoped_acquire locked;
  nb::module_::import_("multihead._remarks").attr("remark")(line);
}

}  // namespace mh::python
