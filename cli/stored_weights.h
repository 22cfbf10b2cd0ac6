// As which types the files of a model store its weights.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "multihead/folders/model_folder.h"

namespace mh::cli {

/// Tensors of the files that are stored alike.
struct StoredAlike {
  std::string type;  // as the file calls it
  int64_t tensors = 0, bytes = 0;
};

/// As the files have them, an adapter left out. What takes most bytes comes first.
std::vector<StoredAlike> stored_weights(const ModelFolder& folder);

nlohmann::ordered_json stored_weights_json(const std::vector<StoredAlike>& all);

/// "90.9 MB".
std::string bytes_text(int64_t bytes);

}  // namespace mh::cli
