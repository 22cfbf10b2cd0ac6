// Translates each of several texts into a language of its own, with a translator of many (folders/language_codes.h).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "multihead/folders/model_folder.h"
#include "multihead/generate/translate.h"
#include "multihead/text/long_lines.h"

namespace mh {

/// The codes of the targets of texts, from the names of their languages. `from`: what a name is called when it is none. Throws
/// FormatError.
std::vector<int32_t> target_codes(const ModelFolder& folder, std::span<const std::string> names,
                                  const LinesFrom& from);

/// Takes the names before the tabs of lines "de<TAB>two dogs run ." and returns their codes; a line without words has none that
/// counts. Throws FormatError that names the line without a tab or with another language than the model has.
std::vector<int32_t> take_target_column(const ModelFolder& folder, std::vector<std::string>& lines,
                                        const LinesFrom& from);

/// As Translator::translate(), each source into the language of its code, so that a translation is what it is alone. The options
/// are completed as complete_search() does; codes may be empty: then they are as they stand. Throws as translate() does, and
/// UsageError on another number of codes than of sources.
std::vector<std::vector<Hypothesis>> translate_into(const ModelFolder& folder, Translator& translator,
                                                    std::span<const std::vector<int32_t>> sources,
                                                    std::span<const int32_t> codes,
                                                    const TranslateOptions& options,
                                                    std::span<const std::vector<int32_t>> prefixes = {});

/// The same of some of the sources, in the order of their numbers here, each with its code and its prefix.
std::vector<std::vector<Hypothesis>> translate_some(const ModelFolder& folder, Translator& translator,
                                                    std::span<const int64_t> numbers,
                                                    std::span<const std::vector<int32_t>> sources,
                                                    std::span<const int32_t> codes,
                                                    const TranslateOptions& options,
                                                    std::span<const std::vector<int32_t>> prefixes = {});

}  // namespace mh
