// Long calls into the library: without Python's lock, ended by Ctrl-C, with callbacks that take the lock again.
#pragma once

#include <nanobind/nanobind.h>

#include <exception>
#include <string>
#include <utility>

#include "multihead/base/error.h"
#include "multihead/base/stop.h"

namespace mh::python {

namespace nb = nanobind;

/// What Python's signal handlers have raised, Ctrl-C's KeyboardInterrupt above all, while the lock was given away.
class PendingSignal {
 public:
  /// Runs handlers that are due; true if one has raised. Handlers run in Python's main thread alone. Takes the lock.
  bool came();
  /// Keeps a KeyboardInterrupt that a callback has raised, so that came() is true and the work ends in order; throws any other
  /// exception again. REQUIRES: called while it is handled.
  void keep(const nb::python_error& raised);
  /// Throws what was raised, if anything was. REQUIRES: the lock is held.
  void rethrow() const;

 private:
  std::exception_ptr raised_;
};

/// Runs work(signal) without Python's lock, and returns what it returns: for work that asks signal.came() itself and throws
/// Interrupted. REQUIRES: work touches no object of Python without taking the lock.
template <class Work>
auto stoppable_call(Work&& work) {
  PendingSignal signal;
  try {
    const nb::gil_scoped_release unlocked;
    return std::forward<Work>(work)(signal);
  } catch (const Interrupted&) {
    signal.rethrow();
    throw;
  }
}

/// The same of work(), whose loops ask (multihead/base/stop.h).
template <class Work>
auto long_call(Work&& work) {
  return stoppable_call([&](PendingSignal& signal) {
    const StopScope scope([&] { return signal.came(); });
    return std::forward<Work>(work)();
  });
}

/// Gives a line worth knowing to Python's warnings, as a multihead.Remark at the caller's line. Takes the lock.
void warn(const std::string& line);

}  // namespace mh::python
