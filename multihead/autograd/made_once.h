// A value made from parameters (a packed copy, joined biases) when it is first needed, and made again after
// a parameter has changed.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

namespace mh {

/// Any number of threads may call get() at once, as long as no parameter changes meanwhile: one thread
/// makes the value, the others wait for it. The memory of T is kept when it is made again.
template <class T>
class MadeOnce {
 public:
  MadeOnce() = default;
  /// A copied object makes its value anew.
  MadeOnce(const MadeOnce&) {}
  MadeOnce& operator=(const MadeOnce&) {
    version_.store(0, std::memory_order_relaxed);
    return *this;
  }

  /// Returns the value of this version (above 0); calls make(value) if it is not there yet.
  template <class Make>
  const T& get(uint64_t version, const Make& make) const {
    if (version_.load(std::memory_order_acquire) != version) {
      std::lock_guard lock(mutex_);
      if (version_.load(std::memory_order_relaxed) != version) {
        make(value_);
        version_.store(version, std::memory_order_release);
      }
    }
    return value_;
  }

 private:
  mutable std::mutex mutex_;
  mutable std::atomic<uint64_t> version_{0};  // what value_ was made from; 0: not made yet
  mutable T value_;
};

}  // namespace mh
