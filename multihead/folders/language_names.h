// Names of languages by ISO 639: "de" and "deu" are both German.
#pragma once

#include <string_view>

namespace mh {

/// Whether one of two codes of ISO 639-1 or 639-3 means the language of the other, or one of several that are called so: "de" and
/// "deu"; "zh" and "zho"; "no" and "nob", but not "nob" and "nno". Knows the languages of M2M-100, mBART and NLLB-200 that have a
/// code of two letters.
bool same_language(std::string_view a, std::string_view b);

}  // namespace mh
