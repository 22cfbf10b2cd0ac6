// A model in one GGUF file, read as if it were a model folder, and written as one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>

#include "multihead/folders/model_folder.h"
#include "multihead/io/gguf.h"
#include "multihead/text/tokenizer.h"

namespace mh {

/// Whether load_model_folder() takes the path for a GGUF file: its name ends with .gguf.
bool is_gguf(const std::filesystem::path& path);

/// Reads the model and its tokenizer. Throws FileError or FormatError as load_model_folder() does. Takes
/// memory of at most 4 bytes for each number of the weights; F32 and BF16 stay in the file.
ModelFolder load_gguf(const std::filesystem::path& path);

/// The same for a file that is open already.
ModelFolder load_gguf(const GgufFile& file);

/// Reads the tokenizer alone. Throws FileError also when the file has none, which the second does.
Tokenizer load_gguf_tokenizer(const std::filesystem::path& path);
[[noreturn]] void throw_no_gguf_tokenizer(const std::filesystem::path& path);

/// Writes the model as the folder that Hugging Face's LlamaForCausalLM and AutoTokenizer open: weights in
/// float32, the tokenizer, its chat template, and the tokens with which texts begin and end. `out` appears as
/// a whole. Returns the number of parameters. `stop` is asked meanwhile; once it returns true, Interrupted is
/// thrown, and nothing is left of `out`. Throws FileError or FormatError as above.
int64_t convert_gguf(const std::filesystem::path& file, const std::filesystem::path& out,
                     const std::function<bool()>& stop = nullptr);

}  // namespace mh
