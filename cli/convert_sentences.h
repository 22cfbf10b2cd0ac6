// The sentences on which convert compares a model with what it became.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "multihead/folders/model_folder.h"
#include "multihead/text/text_languages.h"

namespace mh::cli {

/// What the flags say.
struct CompareOn {
  std::string source, target;  // files; empty: random sentences
  uint64_t seed = 1;           // of these
  bool seed_given = false;
  TextLanguages languages = {};
};

struct ComparedSentences {
  std::string what;                                    // "5 random sentences (seed 1)"
  std::vector<std::vector<int32_t>> sources, targets;  // targets: of a translator, as its decoder reads them
};

/// Throws UsageError on flags that do not go together or with the model, FormatError on files without sentences or of
/// different lengths.
ComparedSentences compared_sentences(const ModelFolder& folder, const CompareOn& on);

/// Of a target's token. REQUIRES: the sentences have targets.
double mean_log_probability(const LanguageModel& model, const ComparedSentences& sentences);

}  // namespace mh::cli
