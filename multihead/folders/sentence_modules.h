// modules.json of sentence-transformers: what is done to a text in order, and in which folders the parts lie.
// Its first module is the Transformer, whose files may have a folder of their own, "0_Transformer".
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace mh {

/// One line of modules.json.
struct SentenceModule {
  std::string type;  // "Pooling"
  std::filesystem::path folder;
};

/// Whether the folder has a modules.json.
bool has_sentence_modules(const std::filesystem::path& folder);

/// In the order in which they are applied: Transformer, Pooling, and then others. remarks: gets a line for each key that is not
/// known. Throws FileError or FormatError: another order, a module that is not supported, a module's folder outside of `folder`.
std::vector<SentenceModule> read_sentence_modules(const std::filesystem::path& folder,
                                                  std::vector<std::string>* remarks = nullptr);

/// Where config.json, weights and tokenizer are: in the first module's folder where there is a modules.json, else
/// in `folder` itself. Throws as read_sentence_modules() does, but minds only the first module's folder.
std::filesystem::path transformer_folder(const std::filesystem::path& folder);

}  // namespace mh
