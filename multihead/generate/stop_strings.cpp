#include "multihead/generate/stop_strings.h"

#include <algorithm>
#include <utility>

#include "multihead/base/error.h"

namespace mh {

StopStrings::StopStrings(std::vector<std::string> strings) : strings_(std::move(strings)) {
  for (const std::string& string : strings_) {
    if (string.empty()) throw UsageError("a stop string is empty; give the text before which to stop");
  }
}

std::string StopStrings::add(std::string_view piece) {
  if (found_) return "";
  waiting_ += piece;
  size_t end = std::string::npos;
  for (const std::string& string : strings_) end = std::min(end, waiting_.find(string));
  if (end != std::string::npos) {
    found_ = true;
    waiting_.resize(end);
    return std::exchange(waiting_, {});
  }
  // The longest end of the text that begins a stop string.
  size_t kept = 0;
  for (const std::string& string : strings_) {
    for (size_t length = std::min(string.size() - 1, waiting_.size()); length > kept; --length) {
      if (waiting_.ends_with(std::string_view(string).substr(0, length))) kept = length;
    }
  }
  std::string shown = waiting_.substr(0, waiting_.size() - kept);
  waiting_.erase(0, shown.size());
  return shown;
}

std::string StopStrings::finish() {
  return found_ ? "" : std::exchange(waiting_, {});
}

}  // namespace mh
