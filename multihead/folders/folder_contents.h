// FolderContents: what a family puts into the folder of a model that is saved.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "multihead/folders/family.h"
#include "multihead/folders/save_folder.h"
#include "multihead/folders/tensor_files.h"

namespace mh {

struct FolderContents {
  SavedFormat format = {};
  std::string refusal = {};  // thrown unless OwnFormat::kAllowed; empty: the format needs no permission
  std::function<TensorPlace(std::string_view parameter)> place = nullptr;
  /// With which a name may begin that has not in the class of the body alone (FolderPlan::prefixes).
  std::vector<std::string> prefixes = {};
  /// Tensors that are copied from the files which were read: those of heads that the model does not have.
  std::shared_ptr<const TensorFiles> read_from = nullptr;
  std::vector<std::string> copied = {};
  /// Name -> bytes of the files besides config.json and the tensors. Throws UsageError when they do not match the model.
  std::function<std::map<std::string, std::string>()> small_files = nullptr;
  /// config.json. own_files: names of the small files and those of tensors, sorted.
  std::function<std::string(const std::vector<std::string>& own_files)> config = nullptr;
};

}  // namespace mh
