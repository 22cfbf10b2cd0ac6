// Opens a file as the desktop does on a double click.
#pragma once

#include <string>

namespace mh::cli {

/// With xdg-open, or open on macOS. A remark says when there is none or it fails.
void open_file(const std::string& path);

}  // namespace mh::cli
