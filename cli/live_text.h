// Generated text that appears on standard output as it comes.
#pragma once

#include <string>
#include <vector>

#include "multihead/tasks/generate_text.h"

namespace mh::cli {

/// Remarks that come in the middle of the text wait for its end.
class LiveText {
 public:
  /// Sets where the options' text and remarks go; this must outlive their use.
  explicit LiveText(GenerateTextOptions& options);
  LiveText(const LiveText&) = delete;
  LiveText& operator=(const LiveText&) = delete;

  /// Ends the line; another text may follow.
  void end();

 private:
  bool begun_ = false;
  std::vector<std::string> later_;  // remarks
};

}  // namespace mh::cli
