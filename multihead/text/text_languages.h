// The languages of a translator of many: settings of every function that runs one on text.
#pragma once

#include <optional>
#include <string>

namespace mh {

/// Names of languages, which language_pair() (folders/language_codes.h) finds in a model's folder. Nothing, or no name: what the
/// folder's files say.
struct TextLanguages {
  std::optional<std::string> source_language = {}, target_language = {};

  template <class V>
  void visit(V& v) {
    constexpr const char* kGroup = "Languages";
    v("source_language", source_language, {},
      {.group = kGroup,
       .help = "Language of the texts, of a translator of many: de, deu, or a code of the model such as "
               "deu_Latn or de_DE",
       .rare = true,
       .value = "CODE"});
    v("target_language", target_language, {},
      {.group = kGroup,
       .help = "Language of the translations, said in the same way",
       .rare = true,
       .value = "CODE"});
  }
};

}  // namespace mh
