// What must be known of a folder whose model is trained further, so that the trained model is saved in the same format with the
// same files beside it (SaveOptions::begun_from).
#pragma once

#include <span>
#include <string_view>

#include "multihead/folders/model_folder.h"

namespace mh {

/// Returns the folder without its model and its tokenizers. The small files are copied into memory, but for those named in
/// `without`, and the tensors stay mapped: the folder may be replaced or removed while this lives.
ModelFolder kept_folder(const ModelFolder& folder, std::span<const std::string_view> without = {});

}  // namespace mh
