// Text in, text out: translate lines with a model, or say how probable given translations are, in one call.
//
//   const mh::ModelFolder folder = mh::load_model_folder("model");
//   for (const std::string& line : mh::translate_text(folder, {"the small dog sees a cat ."})) ...
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "multihead/evaluate/score.h"
#include "multihead/folders/model_folder.h"
#include "multihead/generate/translate.h"

namespace mh {

/// The best translation of each line, in the same order; a line without text stays empty. What the folder's generation_config.json
/// says of the search counts, too (GenerationConfig::complete).
/// `remark`, when given, hears of lines that were cut to the model's longest and of words that the tokenizer
/// does not know, one line each. Throws FileError when the folder has no tokenizer, UsageError when its model
/// is no translator or on invalid options, FormatError on a line that is not UTF-8.
std::vector<std::string> translate_text(const ModelFolder& folder, const std::vector<std::string>& lines,
                                        const TranslateOptions& options = {},
                                        const std::function<void(const std::string&)>& remark = nullptr);

/// For line i of both the natural logarithm of p(target, end token | source). Throws as translate_text does,
/// and UsageError on unequal numbers of lines.
std::vector<double> score_text(const ModelFolder& folder, const std::vector<std::string>& sources,
                               const std::vector<std::string>& targets, const ScoreOptions& options = {},
                               const std::function<void(const std::string&)>& remark = nullptr);

}  // namespace mh
