// A GGUF model that was cut into several files, "m-00001-of-00003.gguf" ..., as llama.cpp's llama-gguf-split writes them: each
// says which part it is ("split.no", from 0) and of how many ("split.count"); the first has the metadata.
#pragma once

#include <filesystem>
#include <vector>

#include "multihead/io/gguf.h"

namespace mh {

/// Opens the file, and where it is the first of several, the others beside it. Throws FileError or FormatError: a part that is
/// not the first, one that is missing, parts that do not belong together.
GgufFile open_gguf_with_parts(const std::filesystem::path& path);

/// The files of the model whose first or only file this is. Throws as open_gguf_with_parts() does of that file.
std::vector<std::filesystem::path> gguf_files(const std::filesystem::path& path);

/// Throws FormatError when the file is a part of a model, saying how to join them.
void refuse_gguf_part(const GgufFile& file);

}  // namespace mh
