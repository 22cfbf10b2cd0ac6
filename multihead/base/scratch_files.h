// A folder for files that go again: below the system's folder for temporary files.
#pragma once

#include <filesystem>
#include <string_view>

namespace mh {

class ScratchFiles {
 public:
  /// Throws FileError when it cannot be made.
  explicit ScratchFiles(std::string_view name);
  ~ScratchFiles();
  ScratchFiles(const ScratchFiles&) = delete;
  ScratchFiles& operator=(const ScratchFiles&) = delete;

  std::filesystem::path operator/(std::string_view file) const { return path_ / file; }

 private:
  std::filesystem::path path_;
};

}  // namespace mh
