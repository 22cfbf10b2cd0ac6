// A model in one GGUF file, read as if it were a model folder, and written as one.
#pragma once

#include <filesystem>
#include <memory>

#include "multihead/folders/model_folder.h"
#include "multihead/io/gguf.h"
#include "multihead/text/tokenizer.h"

namespace mh {

/// Whether load_model_folder() takes the path for a GGUF file: its name ends with .gguf.
bool is_gguf(const std::filesystem::path& path);

/// In a folder that a GGUF file is read as: how states become one vector, where the file says it ("llama.pooling_type" and the like).
inline constexpr const char* kGgufPoolingFile = "1_Pooling/config.json";

/// Opens the file, and the others of a model that was cut into several, as the folder that it could be written as, of Hugging
/// Face's class of the architecture: config.json, generation_config.json, tokenizer_config.json and tokenizer.json are made of its
/// metadata, and its tensors are read from where they lie. load_model_folder() reads the model: it takes memory of at most 4 bytes for each number of the weights;
/// F32 and BF16 stay in the file. Throws FileError or FormatError.
std::shared_ptr<const FolderSource> open_gguf_folder(const std::filesystem::path& path);
/// The same of a file that is open already.
std::shared_ptr<const FolderSource> open_gguf_folder(GgufFile file);

}  // namespace mh
