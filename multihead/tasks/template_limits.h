// What a chat template may do. It comes with a model, from anywhere: one that never ends, or eats all memory, must end
// with an error. The engine (third_party/llama.cpp) asks here at each step; it is a count, not a time.
#pragma once

#include <cstddef>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

namespace mh {

/// Ends a template. The engine lets it pass.
struct TemplateStop : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// While one of these lives, the template that this thread reads and runs has these limits.
class TemplateLimits {
 public:
  /// Bytes of values and texts that are made, and 100 for each expression: some seconds at most.
  static constexpr size_t kWork = size_t{1} << 27;
  /// Blocks and expressions within each other, calls of macros, and lists in lists. A stack of 8 MiB bears many more.
  static constexpr int kLevels = 150;

  explicit TemplateLimits(size_t work) : before_(of_thread()), left_(work) { of_thread() = this; }
  TemplateLimits(const TemplateLimits&) = delete;
  TemplateLimits& operator=(const TemplateLimits&) = delete;
  /// Lists may hold themselves, or each other to any depth: each is emptied by itself.
  ~TemplateLimits() {
    for (const auto& [value, empty] : kept_) empty(value.get());
    of_thread() = before_;
  }

  static TemplateLimits*& of_thread() {
    static thread_local TemplateLimits* limits = nullptr;
    return limits;
  }

  void spend(size_t work) {
    if (work > left_) {
      left_ = 0;
      throw TemplateStop("it works without end: it is longer than any chat needs");
    }
    left_ -= work;
  }
  void enter() {
    if (levels_ >= kLevels) throw TemplateStop("it goes too deep: more than 150 levels within each other");
    ++levels_;
  }
  void leave() { --levels_; }
  void keep(std::shared_ptr<void> value, void (*empty)(void*)) {
    kept_.emplace_back(std::move(value), empty);
  }

 private:
  TemplateLimits* before_;
  size_t left_;
  int levels_ = 0;
  std::vector<std::pair<std::shared_ptr<void>, void (*)(void*)>> kept_;
};

inline void spend_template_work(size_t work) {
  if (TemplateLimits* const limits = TemplateLimits::of_thread()) limits->spend(work);
}

/// empty: takes from a list, at the end, what it holds.
inline void keep_template_value(std::shared_ptr<void> value, void (*empty)(void*)) {
  if (TemplateLimits* const limits = TemplateLimits::of_thread()) limits->keep(std::move(value), empty);
}

/// A level, while it lives.
class TemplateLevel {
 public:
  TemplateLevel() : limits_(TemplateLimits::of_thread()) {
    if (limits_ != nullptr) limits_->enter();
  }
  TemplateLevel(const TemplateLevel&) = delete;
  TemplateLevel& operator=(const TemplateLevel&) = delete;
  ~TemplateLevel() {
    if (limits_ != nullptr) limits_->leave();
  }

 private:
  TemplateLimits* limits_;
};

}  // namespace mh
