#include "cli/stop_signals.h"

namespace mh::cli {
namespace {

volatile std::sig_atomic_t stop_asked = 0;  // the signal
extern "C" void ask_to_stop(int signal) {
  stop_asked = signal;
}

}  // namespace

StopSignals::StopSignals() {
  struct sigaction action {};
  action.sa_handler = ask_to_stop;
  action.sa_flags = static_cast<int>(SA_RESTART | SA_RESETHAND);
  for (size_t i = 0; i < std::size(kSignals); ++i) {
    sigaction(kSignals[i], nullptr, &before_[i]);
    if (before_[i].sa_handler != SIG_IGN) sigaction(kSignals[i], &action, nullptr);
  }
}

StopSignals::~StopSignals() {
  for (size_t i = 0; i < std::size(kSignals); ++i) sigaction(kSignals[i], &before_[i], nullptr);
}

int StopSignals::asked() {
  return stop_asked;
}

}  // namespace mh::cli
