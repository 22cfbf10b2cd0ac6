#include "multihead/base/scratch_files.h"

#include <stdlib.h>

#include <string>
#include <system_error>

#include "multihead/base/error.h"

namespace mh {

ScratchFiles::ScratchFiles(std::string_view name) {
  std::string pattern = (std::filesystem::temp_directory_path() / name).string() + "-XXXXXX";
  if (::mkdtemp(pattern.data()) == nullptr)
    throw FileError("cannot make a folder for temporary files: " + pattern);
  path_ = pattern;
}

ScratchFiles::~ScratchFiles() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace mh
