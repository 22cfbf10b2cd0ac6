// What the files beside a tokenizer.json say of its tokenizer: tokenizer_config.json, special_tokens_map.json and
// added_tokens.json, as AutoTokenizer of transformers 5 reads them. docs/file-formats.md has the table of what is obeyed;
// apply_settings.h does it.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "multihead/folders/tokenizer_class.h"
#include "multihead/text/tokenizer.h"
#include "multihead/text/tokenizer_parts.h"

namespace mh {

class FolderSource;

/// A token that a file wants added, unless the tokenizer has it.
struct TokenToAdd {
  AddedToken token = {};
  std::string file = {};       // which says so, for messages
  bool as_it_says = false;     // its flags take the place of those that tokenizer.json gives it
  bool as_text = false;        // the file gives its text alone
  bool only_if_known = false;  // it gets no new id where the vocabulary lacks it
};

/// The keys of tokens that every tokenizer may have, in the order in which transformers adds them.
inline constexpr std::array<std::string_view, 7> kNamedTokens = {
    "bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"};

struct TokenizerSettings {
  std::string file = {};         // tokenizer_config.json, for messages; empty: there is none
  std::string model_type = {};   // of config.json
  std::string named_class = {};  // tokenizer_class of tokenizer_config.json, else of config.json
  ClassOptions options = {};
  std::optional<bool> add_bos_token = {}, add_eos_token = {};
  bool clean_up_spaces = false;          // before punctuation, in decoded text
  bool clean_up_spaces_of_bpe = false;   // also in that of byte-pair encoding, which has no need of it
  bool split_special_tokens = false;     // special tokens are not found in texts
  std::optional<TextEnd> cut = {};       // truncation_side
  std::optional<bool> gives_types = {};  // model_input_names; unset: as the class does
  std::string target_language = {};      // tgt_lang; src_lang is among the options
  std::string language_codes = {};       // of M2M-100: the name of the list of its languages
  bool translates = false;               // config.json is that of a translator
  // Tokens to add, in this order.
  std::vector<TokenToAdd> listed = {};                        // added_tokens_decoder, or added_tokens.json
  std::map<std::string, TokenToAdd, std::less<>> named = {};  // by their keys, kNamedTokens
  std::vector<TokenToAdd> extra = {};                         // of this tokenizer alone
  /// added_tokens_decoder lists all added tokens: a class with steps of its own looks for no others.
  bool lists_all_added = false;
  int32_t rows = 0;                       // of the model's embedding; 0: unknown
  std::vector<std::string> remarks = {};  // keys and tokens that were not used
};

/// Reads the files of a folder, as far as they are there. Throws FormatError that names the file and the key.
TokenizerSettings read_tokenizer_settings(const FolderSource& folder);

}  // namespace mh
