// An orderly end when a long work is asked to stop.
#pragma once

#include <csignal>
#include <cstddef>
#include <iterator>

#include "cli/common.h"
#include "multihead/base/error.h"
#include "multihead/base/stop.h"

namespace mh::cli {

/// While it lives, SIGTERM, Ctrl-C and a terminal that closes ask for an orderly end; a second such signal
/// ends at once. Signals that are ignored stay so (nohup, jobs in the background). One at a time.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  /// The signal that asked, or 0.
  static int asked();
  /// Runs work(stop), which throws Interrupted once stop() returns true; that becomes StoppedBySignal.
  template <class Work>
  static auto stoppable(Work&& work) {
    const StopSignals signals;
    try {
      return work([] { return asked() != 0; });
    } catch (const Interrupted& stopped) {
      throw StoppedBySignal(stopped.what(), asked());
    }
  }
  /// The same of work whose loops ask (StopScope).
  template <class Work>
  static auto stoppable_loops(Work&& work) {
    return stoppable([&](const auto& stop) {
      const StopScope scope(stop);
      return work();
    });
  }

 private:
  static constexpr int kSignals[] = {SIGTERM, SIGINT, SIGHUP};
  struct sigaction before_[std::size(kSignals)] = {};
};

}  // namespace mh::cli
