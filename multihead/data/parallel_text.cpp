#include "multihead/data/parallel_text.h"

#include <fmt/format.h>

#include "multihead/base/error.h"

namespace mh {

ParallelText read_parallel_text(const std::filesystem::path& source, const std::filesystem::path& target,
                                const TextLimits& limits) {
  ParallelText text{read_lines(source, limits), read_lines(target, limits)};
  for (const auto& [path, lines] : {std::pair{&source, &text.source}, std::pair{&target, &text.target}}) {
    if (lines->empty()) {
      throw FormatError(fmt::format("{}: is empty; expected a sentence a line", path->string()));
    }
  }
  if (text.source.size() != text.target.size()) {
    throw FormatError(
        fmt::format("{} has {} lines but {} has {}; line i of one must translate line i of the other",
                    source.string(), text.source.size(), target.string(), text.target.size()));
  }
  return text;
}

}  // namespace mh
