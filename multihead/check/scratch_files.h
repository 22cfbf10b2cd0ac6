// A folder for files that go again: below the system's folder for temporary files.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>

#include "multihead/base/error.h"

namespace mh {

class ScratchFiles {
 public:
  /// Throws FileError when it cannot be made.
  explicit ScratchFiles(std::string_view name) {
    std::string pattern = (std::filesystem::temp_directory_path() / name).string() + "-XXXXXX";
    if (::mkdtemp(pattern.data()) == nullptr)
      throw FileError("cannot make a folder for temporary files: " + pattern);
    path_ = pattern;
  }
  ~ScratchFiles() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ScratchFiles(const ScratchFiles&) = delete;
  ScratchFiles& operator=(const ScratchFiles&) = delete;

  std::filesystem::path operator/(std::string_view file) const { return path_ / file; }

 private:
  std::filesystem::path path_;
};

}  // namespace mh
