// Word alignments: which word of a sentence translates which word of the other language. Read and written
// in Pharaoh's format, one sentence a line: in "0-0 1-2 2-1" source word 1 is aligned to target word 2.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mh {

/// Pairs of word numbers (source, target), from 0.
using Alignment = std::vector<std::pair<int32_t, int32_t>>;

/// Reads one line of Pharaoh's format; an empty line has no links. Throws FormatError ("NAME:LINE: ...").
Alignment parse_pharaoh(std::string_view line, std::string_view name = "alignment", size_t line_number = 1);
/// Writes the pairs in the order given: "0-0 1-2 2-1".
std::string format_pharaoh(const Alignment& alignment);

/// Throws FormatError when a pair points beyond its sentence. `name` and `line_number` are those of the
/// message.
void check_alignment(const Alignment& alignment, size_t source_words, size_t target_words,
                     std::string_view name, size_t line_number);

}  // namespace mh
