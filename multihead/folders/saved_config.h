// What the folder of a model that was read from files holds when it is saved: what was read, with what changed.
#pragma once

#include <string>

#include "multihead/base/stored_matrix.h"
#include "multihead/folders/folder_contents.h"
#include "multihead/folders/save_folder.h"

namespace mh {

/// Throws UsageError on a model that was not read from files.
FolderContents contents_as_read(const SavedModel& saved, const SaveOptions& options);

/// The generation_config.json of the folder that a model was read from, without alignment_heads where their numbers would mean other
/// heads: the model has other heads of cross-attention now, or ModelFolder::generation has none any more. REQUIRES: the folder has
/// that file.
std::string saved_generation_config(const ModelFolder& read, const Model& now);

/// Sets the type of the numbers: "torch_dtype" was its name before transformers 5.
std::string with_number_type(std::string config, NumberType type);

}  // namespace mh
