// `multihead convert FILE.gguf --out DIR`: the same model as a folder of Hugging Face's.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace mh::cli {

/// Throws UsageError when a flag was given that says how to change heads: nothing changes here.
void refuse_head_flags(const CLI::App& verb);
/// Writes the folder and prints a line about it.
void write_gguf_as_folder(const std::string& file, const std::string& out, bool json);

}  // namespace mh::cli
