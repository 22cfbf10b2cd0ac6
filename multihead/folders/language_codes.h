// LanguageCodes: the languages of a translator of many. A token, the code of a language, tells the encoder which one it reads,
// and another tells the decoder which one to write:
//
//                              the encoder reads    the decoder reads
//   M2M-100, NLLB, mBART-50    CODE text </s>       </s> CODE text      the code is forced to be the first word
//   NLLB as it was at first    text </s> CODE       </s> CODE text
//   mBART                      text </s> CODE       CODE text           the model's start token is the code
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "multihead/folders/tokenizer_class.h"

namespace mh {

struct ModelFolder;
struct SearchOptions;
struct TextLanguages;
struct TokenizerParts;
struct TokenizerSettings;

/// The codes of one translation. Nothing: the folder says none.
struct LanguagePair {
  std::optional<int32_t> source = {}, target = {};
};

struct LanguageCodes {
  CodePlace place = CodePlace::kBefore;  // of the source's
  std::map<std::string, int32_t, std::less<>> ids =
      {};                                          // by the names of languages: "de", "de_DE", "deu_Latn"
  std::string source_name = {}, target_name = {};  // src_lang and tgt_lang of tokenizer_config.json
  LanguagePair usual = {};                         // what the files say
  bool starts_decoder = false;                     // the target's is the decoder's start token

  /// The name of a code: "de" of the token "__de__". Empty: none of these.
  std::string name_of(int32_t id) const;
  /// The id of a language by its name, or by a code of ISO 639 (language_names.h) that fits the part of it before "_", with or
  /// without what comes behind: "deu_Latn", "deu", "de", "de_Latn". Throws UsageError, `asked` first, that lists those that fit where
  /// they are several, and what there is where none does.
  int32_t id_of(std::string_view name, std::string_view asked) const;
};

/// The languages whose codes a translator's tokenizer has among its added tokens, where the class that opens it puts codes around
/// texts.
std::optional<LanguageCodes> codes_of(const TokenizerSettings& settings, const TokenizerParts& parts);

/// What the folder says, completed: its codes are those of a translator that begins as its files have it.
void complete_codes(const ModelFolder& folder, LanguageCodes& codes);

/// The codes of languages. Throws UsageError when some are given and the folder has no codes, or not these, or when it writes
/// one language alone.
LanguagePair language_pair(const ModelFolder& folder, const TextLanguages& languages);

/// The code of a target by its name. Throws UsageError, `asked` first, as language_pair() does.
int32_t named_target(const ModelFolder& folder, std::string_view name, std::string_view asked);

/// What stands before the text of a source or a target, and behind a source's, where the tokenizer's own template does not count.
/// Throw UsageError, with the remedy, when the folder has codes and the pair has not the one that is asked for, here and below.
std::vector<int32_t> before_source(const ModelFolder& folder, const LanguagePair& pair);
std::vector<int32_t> before_target(const ModelFolder& folder, const LanguagePair& pair);
std::vector<int32_t> source_end(const ModelFolder& folder, const LanguagePair& pair);

/// Adds to the options of a translation what the folder says (GenerationConfig::complete). It begins with the code of the target.
void complete_search(const ModelFolder& folder, const LanguagePair& pair, SearchOptions& options);

/// Whether the pair or the folder says both codes, or none are needed.
bool knows_languages(const ModelFolder& folder, const LanguagePair& pair);

}  // namespace mh
