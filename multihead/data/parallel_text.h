// ParallelText: a text and its translation, one sentence a line. Line i of the source and line i of the
// target mean the same. Training, validation and scoring read their texts in this form; tokenised it is
// ParallelTokens (parallel_tokens.h).
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "multihead/io/lines.h"

namespace mh {

/// target[i] is the translation of source[i]. REQUIRES: equal sizes.
struct ParallelText {
  std::vector<std::string> source, target;
  size_t size() const { return source.size(); }
};

/// Reads two files, gzip or not. Throws FileError, and FormatError when a file is empty, not UTF-8 or
/// beyond the limits, or when the numbers of lines differ (the message has both).
ParallelText read_parallel_text(const std::filesystem::path& source, const std::filesystem::path& target,
                                const TextLimits& limits = {});

}  // namespace mh
