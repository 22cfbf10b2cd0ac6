// A model folder, for the verbs that use one.
#pragma once

#include <string>
#include <string_view>

#include "multihead/folders/model_folder.h"
#include "multihead/folders/scored_model.h"

namespace mh::cli {

/// load_model_folder(), with a remark on standard error when the folder stands for a checkpoint of its
/// training.
ModelFolder load_model(const std::string& path);

/// load_scored_model(), with remarks likewise.
ScoredModel load_scored(const std::string& path);

/// load_model(), for a verb that takes translators only. Throws UsageError on another model; `instead` tells what to
/// do with that one.
ModelFolder load_translator(const std::string& path, std::string_view verb, std::string_view instead);

/// Likewise for a verb that takes causal models, too.
ModelFolder load_translator_or_causal(const std::string& path, std::string_view verb,
                                      std::string_view instead);

/// Refuses a --out that exists, so that no model is lost, and one that could not be made. Throws UsageError or FileError.
void check_new_folder(const std::string& out);

}  // namespace mh::cli
