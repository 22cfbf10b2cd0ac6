// A family of models: how its config.json is read, and what its tensors are called in model.safetensors. A
// file in this folder holds both; families.cpp lists them; nothing else knows one.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "multihead/models/model.h"
#include "multihead/models/weight_files.h"

namespace mh {

/// Where a parameter's numbers are in the files. Here a projection is [in, out], so that y = x w, and a bias
/// is a matrix of one row.
struct TensorPlace {
  enum class Layout {
    kMatrix,      // as it is here
    kTransposed,  // [out, in], as torch's Linear has it
    kVector,      // of one row
  };
  std::vector<std::string> names;  // the first that a file has counts; the very first is what is written
  Layout layout = Layout::kMatrix;
  bool may_be_missing = false;  // then it is zero
  int part = 0, parts = 1;      // of a fused tensor: columns of part `part` of `parts` of equal width
};

/// What a config.json says.
struct FolderPlan {
  std::string model_type;
  double least_parameters =
      0;  // a lower bound of the model's numbers: memory is asked for after a look at the files
  /// Weights zero. What config.json does not say (whether there is a pooler) the files do.
  std::function<std::unique_ptr<Model>(const WeightFiles& files)> make;
  std::function<TensorPlace(std::string_view parameter)> place;
  std::vector<std::string> prefixes = {""};  // of all names; the first under which a file has a tensor counts
  /// Tensors that are no weights (masks, tables of sinusoids), by their names without prefix; empty: none. It
  /// may look at them and add to `differences`.
  std::function<bool(const std::string& tensor, const WeightFiles& files, const Model& model,
                     Differences& differences)>
      no_weight = nullptr;
  std::vector<std::string> files = {};  // that must stand beside config.json
};

struct Family {
  std::string_view model_type;  // config.json's
  std::string_view what;        // in one line, for messages
  /// Throws FormatError that starts with `name` and lists all that is wrong with config.json.
  FolderPlan (*read)(std::string_view json, std::string_view name);
};

std::span<const Family* const> families();
/// The plan of config.json, by its model_type. Throws FormatError.
FolderPlan read_plan(std::string_view json, std::string_view name);

}  // namespace mh
