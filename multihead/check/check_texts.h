// The texts on which a model is compared with transformers, as token ids.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "multihead/folders/model_folder.h"
#include "multihead/text/text_languages.h"

namespace mh {

/// The lists have an entry for each text.
struct CheckTexts {
  std::vector<std::string> lines = {};  // empty: the folder has no tokenizer, and the ids are drawn
  std::vector<std::vector<int32_t>> ids = {};
  std::vector<std::vector<int32_t>> targets = {};  // what the decoder of a translator reads
  std::vector<int32_t> new_tokens = {};            // of the greedy text; empty: the model continues none

  int64_t rows() const;
};

/// lines: texts to compare on; none: a short, a long and an odd one, and one of numbers. new_tokens: most tokens of a greedy text.
/// languages: of a translator of many. Throws UsageError when there are lines, but no tokenizer, and as language_pair() does.
CheckTexts check_texts(const ModelFolder& folder, std::span<const std::string> lines, int32_t new_tokens,
                       const TextLanguages& languages = {});

}  // namespace mh
