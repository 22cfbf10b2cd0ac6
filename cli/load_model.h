// A model folder, for the verbs that use one.
#pragma once

#include <string>
#include <string_view>

#include "multihead/folders/model_folder.h"

namespace mh::cli {

/// load_model_folder(), with a remark on standard error when the folder stands for a checkpoint of its
/// training.
ModelFolder load_model(const std::string& path);

/// The same, for a verb that takes translators only. Throws UsageError on another model; `instead` tells what to
/// do with that one.
ModelFolder load_translator(const std::string& path, std::string_view verb, std::string_view instead);

}  // namespace mh::cli
