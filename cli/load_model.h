// A model folder, for the verbs that use one.
#pragma once

#include <string>

#include "multihead/models/model_folder.h"

namespace mh::cli {

/// load_model_folder(), with a remark on standard error when the folder stands for a checkpoint of its
/// training.
ModelFolder load_model(const std::string& path);

}  // namespace mh::cli
