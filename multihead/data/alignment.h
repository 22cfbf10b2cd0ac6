// Which word of a sentence goes with which word of its translation, in Pharaoh's format: "0-0 1-2 2-1" a
// line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mh {

/// Pairs of word numbers (source, target), from 0.
using Alignment = std::vector<std::pair<int32_t, int32_t>>;

/// One line of Pharaoh's format; an empty line aligns nothing. Throws FormatError ("NAME:LINE: ...").
Alignment parse_pharaoh(std::string_view line, std::string_view name = "alignment", size_t line_number = 1);
/// A file, gzip or not, one sentence a line. Throws FileError, FormatError.
std::vector<Alignment> read_pharaoh(const std::filesystem::path& path);
/// "0-0 1-2 2-1", in the order given.
std::string format_pharaoh(const Alignment& alignment);

/// Throws FormatError when a pair points beyond its sentence; `name` and `line_number` say where it stands.
void check_alignment(const Alignment& alignment, size_t source_words, size_t target_words,
                     std::string_view name, size_t line_number);

}  // namespace mh
