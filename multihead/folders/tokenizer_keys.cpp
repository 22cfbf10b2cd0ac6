#include "multihead/folders/tokenizer_keys.h"

#include <iterator>

#include "multihead/folders/known_keys.h"
#include "multihead/io/strict_json.h"

namespace mh {
namespace {

const KeyNames kSpecialTokenKeys = {
    "bos_token",           "eos_token", "unk_token",  "sep_token",
    "pad_token",           "cls_token", "mask_token", "additional_special_tokens",
    "extra_special_tokens"};

const KeyNames kTokenizerKeys = {"tokenizer_class",
                                 "do_lower_case",
                                 "strip_accents",
                                 "tokenize_chinese_chars",
                                 "add_prefix_space",
                                 "trim_offsets",
                                 "split_by_punct",
                                 "legacy",
                                 "legacy_behaviour",
                                 "src_lang",
                                 "tgt_lang",
                                 "language_codes",
                                 "add_bos_token",
                                 "add_eos_token",
                                 "clean_up_tokenization_spaces",
                                 "clean_up_tokenization_spaces_for_bpe_even_though_it_will_corrupt_output",
                                 "split_special_tokens",
                                 "truncation_side",
                                 "model_input_names",
                                 "model_max_length",
                                 "added_tokens_decoder",
                                 "chat_template"};

// Beside a tokenizer.json none of these changes a token in transformers 4.57 and 5.
constexpr KeyRule kRules[] = {
    // names, versions, files
    {.key = "name_or_path"},
    {.key = "special_tokens_map_file"},
    {.key = "tokenizer_file"},
    {.key = "vocab_file"},
    {.key = "merges_file"},
    {.key = "spm_file"},
    {.key = "vocab_type"},
    {.key = "unk_id"},  // DeBERTa's unknown piece is found by name
    {.key = "sp_model_kwargs"},
    {.key = "source_spm"},
    {.key = "target_spm"},
    {.key = "vocab"},
    {.key = "unk_id"},
    {.key = "backend"},
    {.key = "extra_ids"},  // of T5: the sentinels are added tokens of the file
    {.key = "is_local"},
    {.key = "local_files_only"},
    {.key = "files_loaded"},
    {.key = "processor_class"},
    {.key = "auto_map"},
    {.key = "transformers_version"},
    {.key = "_commit_hash"},
    {.key = "use_fast"},
    {.key = "from_slow"},
    {.key = "verbose"},
    {.key = "source_lang"},
    {.key = "target_lang"},
    {.key = "num_madeup_words"},  // rows of the model without a token
    {.key = "separate_vocabs"},   // target_vocab.json says so
    // padding, of which there is none here; truncation that a caller may ask for
    {.key = "padding_side"},
    {.key = "padding"},
    {.key = "pad_to_multiple_of"},
    {.key = "pad_token_id"},
    {.key = "pad_token_type_id"},
    {.key = "max_length"},
    {.key = "stride"},
    {.key = "truncation"},
    {.key = "truncation_strategy"},
    // of tokenizers written in Python alone
    {.key = "do_basic_tokenize"},
    {.key = "never_split"},
    {.key = "clean_text"},
    {.key = "wordpieces_prefix"},
    {.key = "errors"},
    {.key = "spaces_between_special_tokens"},
    {.key = "keep_accents"},
    {.key = "remove_space"},
    {.key = "use_default_system_prompt"},
    // chats
    {.key = "response_template"},
    {.key = "response_schema"},
    {.key = "chat_control_tokens"},
};

/// A token that only this model has, such as "image_token", is an extra special token.
std::string remark_on(KnownKeys known, std::string_view text, std::string_view file) {
  known.obeyed.insert(kSpecialTokenKeys.begin(), kSpecialTokenKeys.end());
  const auto document = parse_json_strictly(text, file);
  for (const auto& [key, value] : document.items()) {
    if (key.ends_with("_token") && (value.is_string() || value.is_object())) known.obeyed.insert(key);
  }
  return known.look_at(document, file).remark();
}

}  // namespace

std::string tokenizer_config_remark(std::string_view text, std::string_view file) {
  return remark_on({.obeyed = kTokenizerKeys, .rules = {std::begin(kRules), std::end(kRules)}}, text, file);
}

std::string special_tokens_remark(std::string_view text, std::string_view file) {
  return remark_on({}, text, file);
}

}  // namespace mh
