#include "cli/live_text.h"

#include <string_view>
#include <utility>

#include "cli/common.h"

namespace mh::cli {

LiveText::LiveText(GenerateTextOptions& options) {
  options.remark = [this](const std::string& line) { begun_ ? later_.push_back(line) : remark(line); };
  options.on_text = [this](size_t, std::string_view piece) {
    begun_ = true;
    write_text("", std::string(piece));
  };
}

void LiveText::end() {
  write_text("", "\n");
  begun_ = false;
  for (const std::string& line : std::exchange(later_, {})) remark(line);
}

}  // namespace mh::cli
