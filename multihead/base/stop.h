// How a caller ends a long call early. Every parallel_for (thread_pool.h) of the call asks, and so does whoever writes a folder.
//
//   const mh::StopScope scope([&] { return cancelled.load(); });
//   mh::translate_text(folder, lines);   // throws Interrupted soon after `cancelled` has become true
#pragma once

#include <functional>
#include <memory>

namespace mh {

namespace detail {
struct Stop;
}

/// While it lives, what this thread computes asks `stop`, at most every 20 ms, and throws Interrupted once it has returned true;
/// threads that help end with it. `stop` is called by this thread alone; what it throws is thrown instead. Scopes may be nested:
/// the inner one counts. Work that must not end halfway has an inner scope without a function.
/// REQUIRES: it is destroyed by the thread that made it.
class StopScope {
 public:
  explicit StopScope(std::function<bool()> stop);
  ~StopScope();
  StopScope(const StopScope&) = delete;
  StopScope& operator=(const StopScope&) = delete;

 private:
  std::unique_ptr<detail::Stop> own_;
  detail::Stop* outer_;
  bool outer_asks_;
};

/// For long work that has no parallel_for: throws Interrupted once the innermost scope's function has returned true.
void throw_if_stopped();
/// Whether it has, asking at once, for work that ends in its own words.
bool stop_asked();

namespace detail {
/// The scope that this thread works for; null: there is none.
Stop* stop_here();

/// The scope that the thread works for which makes this, to be asked inside an inner one.
class OuterStop {
 public:
  OuterStop();
  bool is_there() const { return stop_ != nullptr; }
  /// What stop_asked() says of it. REQUIRES: the same thread.
  bool asked() const;

 private:
  Stop* stop_;
  bool asks_;
};

/// Lends another thread's scope to this one, which helps it: it ends when that thread has heard that it should.
class HelpStop {
 public:
  explicit HelpStop(Stop* stop);
  ~HelpStop();
  HelpStop(const HelpStop&) = delete;
  HelpStop& operator=(const HelpStop&) = delete;

 private:
  Stop* outer_;
  bool outer_asks_;
};
}  // namespace detail

}  // namespace mh
