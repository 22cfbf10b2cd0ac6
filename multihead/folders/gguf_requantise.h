// The same GGUF file with smaller matrices.
#pragma once

#include <filesystem>

#include "multihead/base/block_matrix.h"
#include "multihead/io/gguf.h"

namespace mh {

/// Writes the file with the metadata of `file` and its tensors, of which the matrices become blocks of the type, where they take
/// more bytes now and their rows are whole blocks; all else is copied. With Q4_0 the output layer, or the table of embeddings that
/// is one, becomes Q8_0, since its errors are those of the probabilities (llama.cpp takes Q6_K). `file` may be the parts of a model
/// that was cut (folders/gguf_split.h): one file is written. Throws UsageError when no matrix would change, FileError, Interrupted,
/// and Error that names a tensor with numbers that are not finite, or too large for float16. REQUIRES: can_quantise(type).
void requantise_gguf(const GgufFile& file, BlockType type, const std::filesystem::path& to);

}  // namespace mh
