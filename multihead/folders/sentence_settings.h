// What a folder of sentence-transformers says of its texts and vectors besides its modules: sentence_bert_config.json beside the
// Transformer, and config_sentence_transformers.json.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "multihead/folders/json_file.h"
#include "multihead/folders/known_keys.h"
#include "multihead/folders/sentence_model.h"

namespace mh {

/// Adds a line to `remarks` when the file has keys that are not known. Throws FormatError on those that are refused.
void remark_unknown_keys(const JsonFile& file, const KnownKeys& keys, std::vector<std::string>& remarks);

/// config_sentence_transformers.json, where there is one: prompts and similarity. Throws FormatError.
void read_sentence_settings(const std::filesystem::path& root, SentenceModel& model);
/// Its truncate_dim, after all steps: sentence-transformers cuts what they gave, and does not divide by the length again.
void read_truncation(const std::filesystem::path& root, SentenceModel& model);

/// sentence_bert_config.json, or tokenizer_config.json: how many tokens are read, and whether in lower case. The first of
/// processing_kwargs.text.max_length, processor_kwargs.model_max_length, max_seq_length and the tokenizer's model_max_length
/// counts; never more than the model has positions for. Throws FormatError.
void read_transformer_settings(const std::filesystem::path& folder, SentenceModel& model);

}  // namespace mh
