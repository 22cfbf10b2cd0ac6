// The classes of transformers 5 that open a tokenizer.json. Most take its vocabulary and merges alone and have steps of their
// own around them (normaliser, pre-tokeniser, decoder, template); others take the file as it is written.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "multihead/text/tokenizer_parts.h"

namespace mh {

enum class TokenizerClass {
  kAsWritten,  // TokenizersBackend, which PreTrainedTokenizerFast is today
  kBert,
  kMpnet,
  kRoberta,
  kGpt2,
  kGptNeox,
  kGemma,
  kQwen2,
  kLlama,
  kXlmRoberta,
  kCamembert,
  kMbart,
  kMbart50,
  kNllb,
  kT5,
  kDeberta
};

/// Where a class puts the code of a text's language: nowhere, before the text, or behind its end token.
enum class CodePlace { kNone, kBefore, kBehind };

struct ChosenClass {
  TokenizerClass kind = TokenizerClass::kAsWritten;
  std::string name = {};     // of the class: "BertTokenizer"
  bool known = true;         // false: a class that is named and not known here
  bool gives_types = false;  // model_input_names of the class has token_type_ids
  CodePlace codes = CodePlace::kNone;
};

/// Which class AutoTokenizer takes. named: tokenizer_class of tokenizer_config.json, else of config.json, perhaps empty.
/// byte_level: tokenizer.json has a step ByteLevel.
ChosenClass choose_tokenizer_class(std::string_view model_type, std::string_view named, bool byte_level);

/// The token that a class takes for "cls_token" and the like where the files name none; empty: none.
std::string_view default_token(TokenizerClass kind, std::string_view key);

/// The arguments of the classes that change texts' tokens; unset: the default of the class.
struct ClassOptions {
  std::optional<bool> do_lower_case = {}, strip_accents = {},
                      tokenize_chinese_chars = {};  // kBert, kMpnet; the first kDeberta, too
  std::optional<bool> add_prefix_space = {};        // the classes with ByteLevel and Metaspace
  std::optional<bool> trim_offsets = {};            // kRoberta
  std::optional<bool> split_by_punct = {};          // kDeberta: each character of punctuation is a word
  std::optional<bool> legacy = {};            // kLlama: a space also before a text behind a special token
  std::optional<bool> legacy_behaviour = {};  // kNllb: the language's code behind a text's end
  std::optional<std::string> language = {};   // src_lang: of the texts
  std::optional<std::string> cls = {}, sep = {}, bos = {}, eos = {}, unk = {};  // the names of these tokens
};

/// Whether the class is for models of this kind: BertTokenizer for WordPiece.
bool fits_class(TokenizerClass kind, const TokenModel& model);

}  // namespace mh
