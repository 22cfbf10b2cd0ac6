// The config.json with which a model that was read from files is saved: the one that was read, with what changed.
#pragma once

#include <span>
#include <string>

#include "multihead/folders/families/family.h"
#include "multihead/folders/model_folder.h"
#include "multihead/folders/save_folder.h"
#include "multihead/nn/head_name.h"

namespace mh {

/// In which format, and where it is our own, why the family's cannot hold the heads.
SavedFormat saved_format(const FolderPlan& plan, const Model& as_read, const Model& now,
                         std::span<const HeadName> removed);

/// The file. as_read: the model that the folder's files describe.
std::string saved_config(const FolderPlan& plan, const Model& as_read, const ModelFolder& folder,
                         const SavedFormat& format, const SaveFolderOptions& options);

/// Sets the type of the numbers: "torch_dtype" was its name before transformers 5.
std::string with_number_type(std::string config, NumberType type);

}  // namespace mh
