// A model on disk: the folder that multihead trains into and Hugging Face Transformers opens.
//
//   config.json              the shape; model_type says which family (models/families/)
//   model.safetensors        the weights
//   tokenizer.json           the tokenizer, also Hugging Face's
//   target_tokenizer.json    only with separate vocabularies: the target's
//   tokenizer_config.json    which class opens it, and the special tokens
//   generation_config.json   how generate() starts, ends and what it never says
//
// docs/file-formats.md describes every field.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "multihead/base/file.h"
#include "multihead/models/language_model.h"
#include "multihead/text/tokenizer.h"

namespace mh {

class EncoderDecoder;

struct ModelFolder {
  std::filesystem::path path;
  std::string model_type;  // config.json's: "marian", "gpt2", ...
  std::unique_ptr<Model> model;
  std::optional<Tokenizer> tokenizer;         // of the source, and of the target when there is no other
  std::optional<Tokenizer> target_tokenizer;  // only with separate vocabularies
  std::vector<int32_t>
      suppressed;  // tokens that generation_config.json forbids; rising; usually the pad token

  /// The model as what the caller needs. Throw UsageError that says what it is when it is another kind.
  LanguageModel& language_model() const;
  EncoderDecoder& translator() const;

  /// Throw FileError with the remedy when the folder has no tokenizer.
  const Tokenizer& source_tokens() const;
  const Tokenizer& target_tokens() const;
};

/// Reads a folder that multihead or save_pretrained of one of the families() wrote; weights may be F32, F16
/// or BF16, in one file or in shards. F32 and BF16 stay in the files, which are mapped into memory. Only
/// config.json and model.safetensors must be there (and what multihead wrote with them). Throws FileError or
/// FormatError: a missing or damaged file, another architecture, all differences between config.json and the
/// weights, a tokenizer that does not match the model.
ModelFolder load_model_folder(const std::filesystem::path& path);

struct SaveOptions {
  const Tokenizer* tokenizer = nullptr;
  const Tokenizer* target_tokenizer = nullptr;          // only with separate vocabularies
  int beam_size = 5;                                    // what transformers' generate() does by default
  std::map<std::string, std::string> extra_files = {};  // name -> bytes, e.g. the state of a training
};

/// Writes the folder as a whole: a kill at any moment leaves the old one or the new one. An older model
/// folder of that name is replaced. Throws FileError, also when a folder of that name holds anything but
/// one model's files; UsageError when tokenizer and model do not match.
void save_model_folder(const std::filesystem::path& path, const EncoderDecoder& model,
                       const SaveOptions& options = {});

/// The same into a folder being written, for callers that add more to it. The caller commits.
void write_model_files(FolderWriter& folder, const EncoderDecoder& model, const SaveOptions& options = {});

/// All that keeps this tokenizer from working with a model of this vocabulary and these special tokens, one
/// clause each. `end` and `pad` are the tokens' names; an empty one is not looked for.
std::vector<std::string> tokenizer_mismatches(const Tokenizer& tokenizer, int32_t vocabulary,
                                              const ModelFacts& facts, const std::string& end = "</s>",
                                              const std::string& pad = "<pad>");

}  // namespace mh
