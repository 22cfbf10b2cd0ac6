#include "cli/comparison.h"

#include <fmt/format.h>

#include <limits>

#include "cli/common.h"
#include "cli/side_by_side.h"
#include "multihead/base/terminal_text.h"

namespace mh::cli {

std::string comparison_heading() {
  return side_by_side("ALL HEADS", "WITH CHANGED HEADS");
}

std::string TextComparison::add(const std::string& what, const Compared<Text>& texts) {
  ++all_;
  sums_.whole += texts.whole.log_probability;
  sums_.changed += texts.changed.log_probability;
  if (texts.whole.text == texts.changed.text) return "";
  const auto text = [](const Text& of) { return of.text.empty() ? "(nothing)" : of.text; };
  const auto probability = [](const Text& of) {
    return fmt::format("log-probability {:.2f}", of.log_probability);
  };
  return (different_++ == 0 ? comparison_heading() : "") + "\n" +
         wrapped(cell_text(what, std::numeric_limits<int>::max())) +
         side_by_side(text(texts.whole), text(texts.changed)) +
         side_by_side(probability(texts.whole), probability(texts.changed));
}

std::string TextComparison::summary() const {
  const auto count = static_cast<double>(all_);
  return fmt::format(
      "{}{} of {} changed\n"
      "mean log-probability of a {}: {:.2f} with all heads, {:.2f} changed\n",
      different_ > 0 ? "\n" : "", different_, counted(all_, one_), one_, sums_.whole / count,
      sums_.changed / count);
}

}  // namespace mh::cli
