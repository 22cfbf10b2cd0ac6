#include "multihead/base/stop.h"

#include <atomic>
#include <chrono>
#include <utility>

#include "multihead/base/error.h"

namespace mh {

struct detail::Stop {
  std::function<bool()> ask = nullptr;
  std::chrono::steady_clock::time_point next = {};  // when it is asked again
  std::atomic<bool> stopped{false};
};

namespace {

thread_local detail::Stop* stop_of_thread = nullptr;
thread_local bool asks = false;  // this thread made the scope: it calls the function

}  // namespace

StopScope::StopScope(std::function<bool()> stop) : outer_(stop_of_thread), outer_asks_(asks) {
  if (stop) {
    own_ = std::make_unique<detail::Stop>();
    own_->ask = std::move(stop);
  }
  stop_of_thread = own_.get();
  asks = own_ != nullptr;
}

StopScope::~StopScope() {
  stop_of_thread = outer_;
  asks = outer_asks_;
}

bool stop_asked() {
  detail::Stop* stop = stop_of_thread;
  if (stop == nullptr) return false;
  if (asks && !stop->stopped.load(std::memory_order_relaxed)) {
    bool found = true;
    try {
      found = stop->ask();
    } catch (...) {
      stop->stopped.store(true, std::memory_order_relaxed);  // for those who help
      throw;
    }
    if (found) stop->stopped.store(true, std::memory_order_relaxed);
    stop->next = std::chrono::steady_clock::now() + std::chrono::milliseconds(20);
  }
  return stop->stopped.load(std::memory_order_relaxed);
}

void throw_if_stopped() {
  const detail::Stop* stop = stop_of_thread;
  if (stop == nullptr) return;
  if (asks && !stop->stopped.load(std::memory_order_relaxed) && std::chrono::steady_clock::now() < stop->next)
    return;
  if (stop_asked()) throw Interrupted("stopped, as the caller asked");
}

namespace detail {

Stop* stop_here() {
  return stop_of_thread;
}

OuterStop::OuterStop() : stop_(stop_of_thread), asks_(asks) {}

bool OuterStop::asked() const {
  const HelpStop back(stop_);  // puts what is here back in its end
  asks = asks_;
  return stop_asked();
}

HelpStop::HelpStop(Stop* stop) : outer_(stop_of_thread), outer_asks_(asks) {
  stop_of_thread = stop;
  asks = false;
}

HelpStop::~HelpStop() {
  stop_of_thread = outer_;
  asks = outer_asks_;
}

}  // namespace detail

}  // namespace mh
