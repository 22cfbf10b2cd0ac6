// The model that comes with the library: a small English-German translator of 630,688 parameters, which `multihead demo`
// trains on its built-in grammar (scripts/demo_model). load_model_folder("demo") reads it, whatever the current folder is.
#pragma once

#include <filesystem>
#include <memory>

#include "multihead/folders/folder_source.h"

namespace mh {

inline constexpr const char* kShippedName = "demo";

/// Whether load_model_folder() takes the path for the shipped model: it is "demo", and no folder of that name in the
/// current folder holds a model or the training of one.
bool is_shipped(const std::filesystem::path& path);

/// Its files (share/demo), which the library holds in itself.
std::shared_ptr<const FolderSource> open_shipped_folder();

}  // namespace mh
