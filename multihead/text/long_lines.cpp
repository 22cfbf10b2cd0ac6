#include "multihead/text/long_lines.h"

#include <fmt/format.h>

#include <utility>

#include "multihead/base/error.h"

namespace mh {

std::string LinesFrom::at(size_t i) const {
  return fmt::format("{}{}{} {}", name, name.empty() ? "" : " ", one, first + i);
}

LongLines::LongLines(LinesFrom from, Limit limit) : from_(std::move(from)), limit_(std::move(limit)) {
  if (!limit_.before.empty()) limit_.before.insert(0, " before ");
}

void LongLines::note(size_t i, size_t tokens) {
  if (tokens <= limit_.longest) return;
  if (cut_++ > 0) return;
  first_ = fmt::format("{} has {} tokens", from_.at(i), tokens);
  if (!limit_.strict) return;
  throw FormatError(
      fmt::format("{}, but the model reads {}{}; {}", first_, limit_.longest, limit_.before, limit_.remedy));
}

void LongLines::tell(size_t lines, const std::function<void(const std::string&)>& remark) const {
  if (cut_ == 0 || !remark) return;
  remark(fmt::format("{} of {} {}{} cut to the {} tokens that the model reads{}, at {} {}; {}", cut_, lines,
                     from_.one, lines == 1 ? "" : "s", limit_.longest, limit_.before,
                     cut_ == 1 ? "its" : "their", limit_.cut == TextEnd::kStart ? "start" : "end", first_));
}

}  // namespace mh
