#include "multihead/folders/gguf_split.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/base/file.h"

namespace mh {
namespace {

namespace fs = std::filesystem;

constexpr const char* kJoin = "or join them with llama.cpp's llama-gguf-split --merge";

struct PartOf {
  int64_t number = 0, count = 1;
};
PartOf part_of(const GgufFile& file) {
  constexpr int64_t kMostParts = 10'000;
  return {.number = file.integer("split.no", 0, kMostParts).value_or(0),
          .count = file.integer("split.count", 0, kMostParts).value_or(1)};
}

std::string ending_of(int64_t number, int64_t count) {
  return fmt::format("-{:05}-of-{:05}.gguf", number + 1, count);
}

std::vector<fs::path> files_of(const fs::path& path, const GgufFile& first) {
  const PartOf part = part_of(first);
  if (part.count <= 1) return {path};
  const std::string name = path.string(), ending = ending_of(part.number, part.count);
  if (!name.ends_with(ending)) {
    throw FormatError(fmt::format(
        "{} is part {} of {} of a model, whose name does not end with {}; give all parts such names, {}",
        name, part.number + 1, part.count, ending, kJoin));
  }
  const std::string begin = name.substr(0, name.size() - ending.size());
  if (part.number > 0) {
    throw FormatError(fmt::format("{} is part {} of {} of a model; name the first, {}, {}", name,
                                  part.number + 1, part.count, begin + ending_of(0, part.count), kJoin));
  }
  std::vector<fs::path> files;
  for (int64_t number = 0; number < part.count; ++number)
    files.emplace_back(begin + ending_of(number, part.count));
  return files;
}

}  // namespace

void refuse_gguf_part(const GgufFile& file) {
  const PartOf part = part_of(file);
  if (part.count <= 1) return;
  throw FormatError(fmt::format("{} is part {} of {} of a model; name the first of its files, {}",
                                file.name(), part.number + 1, part.count, kJoin));
}

std::vector<fs::path> gguf_files(const fs::path& path) {
  return files_of(path, GgufFile::open(path));
}

GgufFile open_gguf_with_parts(const fs::path& path) {
  GgufFile first = GgufFile::open(path);
  const std::vector<fs::path> files = files_of(path, first);
  if (files.size() == 1) return first;
  const auto count = std::ssize(files);
  std::vector<GgufFile> parts{std::move(first)};
  for (int64_t number = 1; number < count; ++number) {
    const fs::path& next = files[static_cast<size_t>(number)];
    if (!is_there(next)) {
      throw FileError(
          fmt::format("{} is part 1 of {} of a model, and there is no {}; put all parts beside it, {}",
                      path.string(), count, next.string(), kJoin),
          ENOENT);
    }
    const PartOf found = part_of(parts.emplace_back(GgufFile::open(next)));
    if (found.number != number || found.count != count) {
      throw FormatError(fmt::format("{} says that it is part {} of {}; expected part {} of {}", next.string(),
                                    found.number + 1, found.count, number + 1, count));
    }
  }
  GgufFile whole = GgufFile::joined(parts);
  const auto tensors = std::ssize(whole.tensors());
  if (const auto said = whole.integer("split.tensors.count", 0, INT32_MAX); said && *said != tensors) {
    throw FormatError(fmt::format("{} and its other parts have {} tensors; \"split.tensors.count\" is {}",
                                  path.string(), tensors, *said));
  }
  return whole;
}

}  // namespace mh
