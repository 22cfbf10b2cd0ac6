// ModelFolder: a model on disk, in the folder that multihead trains into. Hugging Face Transformers opens
// it, too, if it has a class for the model.
//
//   config.json              the shape; model_type says which family (folders/families/)
//   model.safetensors        the weights
//   tokenizer.json           the tokenizer, in Hugging Face's format
//   target_tokenizer.json    the tokenizer of the target, if the vocabularies are separate
//   source.spm, target.spm, vocab.json, target_vocab.json
//                            in place of both, in OPUS's folders (folders/piece_tokenizers.h)
//   sentencepiece.bpe.model, vocab.json
//                            in M2M-100's
//   tokenizer_config.json    which class opens it, and the special tokens
//   generation_config.json   how generate() starts, searches and ends, and which tokens it never generates
//
// docs/file-formats.md describes every field.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "multihead/folders/labels.h"
#include "multihead/generate/search.h"
#include "multihead/models/language_model.h"
#include "multihead/text/tokenizer.h"

namespace mh {

class EncoderDecoder;
class FolderSource;
struct GenerateOptions;
struct LanguageCodes;

/// What generation_config.json says of the search for a text (folders/generation_config.h reads it). Numbers that the file does not
/// have are nothing.
struct GenerationConfig {
  /// suppress_tokens, and the bad_words_ids of one token: they are never generated. Rising; usually the pad token.
  std::vector<int32_t> suppressed = {};
  /// eos_token_id, one or several: they end a text. Those beyond the vocabulary never come and are left out.
  std::vector<int32_t> end_tokens = {};
  std::optional<int32_t> no_repeat_ngram = {};  // no_repeat_ngram_size
  std::optional<double> length_penalty = {};    // LengthPenalty::Form::kDivide
  /// early_stopping; transformers takes false where the file does not say it.
  EarlyStopping early_stopping = EarlyStopping::kFalse;

  // Of translators alone:
  std::optional<int32_t> beam_size = {};  // num_beams
  /// Tokens behind the start token, which min_length and max_length count: min_new_tokens or min_length - 1, max_new_tokens or
  /// max_length - 1.
  std::optional<int32_t> min_length = {}, max_length = {};
  /// forced_bos_token_id, the first token of every translation.
  std::optional<int32_t> forced_first = {};
  /// forced_eos_token_id, the last token of a translation that reaches the longest length; a list of several is none.
  std::optional<int32_t> forced_last = {};
  /// alignment_heads, as Whisper's file has them: heads of cross-attention whose mean weights align. Beside them alignment_query, a
  /// key of ours, where it is not "predicts". None: the file does not say. Whether the model has them check_heads() says
  /// (generate/align.h).
  std::optional<AligningHeads> alignment = {};

  /// Adds to the options of a translator's search, or of a text that goes on, what is said here of it, where they say nothing
  /// themselves.
  void complete(SearchOptions& options) const;
  void complete(GenerateOptions& options) const;
};

struct ModelFolder {
  std::filesystem::path path;  // of the files that were read
  /// Set when the folder has no model of its own yet: the update of the checkpoint that was read instead,
  /// whose folder is `path`.
  std::optional<int64_t> checkpoint = {};
  bool shipped = false;  // it is the one that comes with the library (folders/shipped_folder.h)
  /// Tensors of heads that are not done here, such as classification: they were not read.
  std::vector<std::string> not_read = {};
  /// Lines that remark() ends with: keys of the files that are not known here and were not used (folders/known_keys.h).
  std::vector<std::string> remarks = {};
  std::shared_ptr<const FolderSource> source = {};  // what it was read from
  std::string model_type;                           // config.json's: "marian", "gpt2", ...
  std::unique_ptr<Model> model;
  std::optional<Tokenizer> tokenizer;  // of the source, and of the target if there is no target_tokenizer
  std::optional<Tokenizer> target_tokenizer;  // only if the target has its own
  /// The labels that a classifier gives; nothing when the model is none.
  std::optional<Labels> labels;
  /// How a text is searched for (folders/generation_config.h); nothing of models without a vocabulary of words to write.
  GenerationConfig generation;
  /// The languages of a translator whose tokenizer puts their codes around texts (folders/language_codes.h). Null: there are none.
  std::shared_ptr<const LanguageCodes> languages;
  /// What the texts of a task begin with, by the task's name: task_specific_params of T5's config.json.
  std::map<std::string, std::string> task_prefixes;
  /// A line for who generates or translates: keys of generation_config.json with which transformers would choose other words
  /// (folders/generation_keys.h). It is no part of remark(). Empty: there are none.
  std::string generation_remark;
  /// The Jinja template that makes a prompt of chat messages (tokenizer_config.json's chat_template, or
  /// chat_template.jinja); empty: there is none.
  std::string chat_template;
  /// The special tokens that tokenizer_config.json or special_tokens_map.json names, by their keys: "bos_token", ...
  std::map<std::string, std::string> special_tokens;
  /// The token that stands for a missing word: mask_token of tokenizer_config.json, or of
  /// special_tokens_map.json; empty: neither says one.
  std::string mask_token;

  /// Returns one line for the user: that this is a folder named as the model that comes with the library, which checkpoint
  /// was read, which tensors were not (not_read), and the `remarks`. Empty when there is nothing to say.
  std::string remark() const;

  /// Whether it predicts no words and gives no labels, so that the vector of a text is all that it says of it.
  bool gives_vectors_alone() const { return !model->predicts() && !labels; }

  /// The model as the kind that the caller needs. Throw UsageError, saying what it is, when it is another
  /// kind.
  LanguageModel& language_model() const;
  LanguageModel& causal_model() const;
  EncoderDecoder& translator() const;

  /// The tokenizers. Throw FileError with the remedy when the folder has none.
  const Tokenizer& source_tokens() const;
  const Tokenizer& target_tokens() const;
};

/// Reads a folder that multihead wrote, or Hugging Face's save_pretrained() for one of the families().
/// Weights may be F32, F16 or BF16, in one file or in shards. F32 and BF16 stay in the files, which are
/// mapped into memory. Only config.json and model.safetensors must be there (and what multihead wrote with
/// them). A folder in which a training was stopped before its first model was put there stands for its
/// newest checkpoint that has both; ModelFolder::checkpoint says which. A folder that is replaced meanwhile is read again.
/// Throws FileError or FormatError: a missing or damaged file, another architecture, all differences between config.json and
/// the weights, a tokenizer that does not match the model.
///
/// Of a folder of sentence-transformers the Transformer is read, wherever its modules.json says that it is
/// (folders/sentence_modules.h). A file whose name ends with .gguf is read instead of a folder
/// (folders/gguf_folder.h). "demo" is the translator that comes with the library, unless a folder of that name holds a model
/// (folders/shipped_folder.h).
ModelFolder load_model_folder(const std::filesystem::path& path);
/// The same of files wherever they come from (folders/folder_source.h).
ModelFolder load_model_folder(std::shared_ptr<const FolderSource> source);

/// The tokenizer (of the source) alone, of whatever load_model_folder() takes. Throws FileError, also when there is none, and
/// FormatError. remark hears what its files say and is not obeyed; may be null.
Tokenizer load_tokenizer(const std::filesystem::path& path,
                         const std::function<void(const std::string&)>& remark = nullptr);

}  // namespace mh
