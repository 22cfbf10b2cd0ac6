// What the folder of a model that was read from files holds when it is saved: what was read, with what changed.
#pragma once

#include <string>

#include "multihead/base/stored_matrix.h"
#include "multihead/folders/folder_contents.h"
#include "multihead/folders/save_folder.h"

namespace mh {

/// Throws UsageError on a model that was not read from files.
FolderContents contents_as_read(const SavedModel& saved, const SaveOptions& options);

/// Sets the type of the numbers: "torch_dtype" was its name before transformers 5.
std::string with_number_type(std::string config, NumberType type);

}  // namespace mh
