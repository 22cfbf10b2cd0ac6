// A text and its translation, a sentence a line.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

namespace mh {

/// source[i] and target[i] say the same. REQUIRES: equal sizes.
struct ParallelText {
  std::vector<std::string> source, target;
  size_t size() const { return source.size(); }
};

/// Reads two files, gzip or not. Throws FileError, and FormatError when a file is empty, not UTF-8, or their
/// numbers of lines differ (the message has both numbers).
ParallelText read_parallel_text(const std::filesystem::path& source, const std::filesystem::path& target);

}  // namespace mh
