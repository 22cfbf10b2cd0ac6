// Text in lines: a file, gzip or not, becomes one string a line.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace mh {

/// The lines of a file, plain or gzip (told by its first bytes), without their "\n" or "\r\n". A last line
/// needs no line end; an empty file has no lines; a byte order mark at the beginning is no text. Throws
/// FileError when the file cannot be read, FormatError when it is not UTF-8 (naming the line) or its gzip
/// data is cut short or damaged.
std::vector<std::string> read_lines(const std::filesystem::path& path);

/// The same for bytes that are here already, e.g. standard input; `name` is what errors call them.
std::vector<std::string> split_lines(std::string&& bytes, std::string_view name);

/// `bytes` unpacked when they are gzip data (one member or more), else as they are. Throws FormatError.
std::string unpack_gzip(std::string&& bytes, std::string_view name);

}  // namespace mh
