// Ends a text before the first of some strings, while it comes piece by piece.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace mh {

class StopStrings {
 public:
  /// Throws UsageError on an empty string.
  explicit StopStrings(std::vector<std::string> strings);

  /// Adds a piece of the text. Returns what can be shown: the text up to the first stop string, or up to an
  /// end of it that might be the beginning of one. Of stop strings that are complete with the same piece the
  /// one that begins first counts. Once found() the rest of the text is left out.
  std::string add(std::string_view piece);
  bool found() const { return found_; }
  /// What waits, when the text has ended without a stop string.
  std::string finish();

 private:
  std::vector<std::string> strings_;
  std::string waiting_;
  bool found_ = false;
};

}  // namespace mh
