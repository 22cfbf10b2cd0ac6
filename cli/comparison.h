// What --compare shows: what comes with all heads as they are beside what comes with those that are changed.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

namespace mh::cli {

/// The line above the two columns.
std::string comparison_heading();

/// One thing with all heads as they are, and the same with changed ones.
template <class T>
struct Compared {
  T whole, changed;
};

/// Texts with their log-probabilities. Those that are equal are counted, but not shown.
class TextComparison {
 public:
  struct Text {
    std::string text;
    double log_probability = 0;
  };
  /// one: what a text is called, "translation".
  explicit TextComparison(std::string one) : one_(std::move(one)) {}

  /// What there is to show of two texts; nothing when they are equal. what: where they come from, "line 3: a cat".
  std::string add(const std::string& what, const Compared<Text>& texts);
  bool empty() const { return all_ == 0; }
  /// How many changed, and the mean log-probabilities. REQUIRES: not empty().
  std::string summary() const;

 private:
  std::string one_;
  int64_t all_ = 0, different_ = 0;
  Compared<double> sums_ = {};
};

}  // namespace mh::cli
