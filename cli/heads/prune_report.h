// What `multihead heads prune` says about the model that is left.
#pragma once

#include <cstdint>
#include <string>

#include "cli/convert_report.h"
#include "multihead/base/stored_matrix.h"
#include "multihead/folders/save_folder.h"
#include "multihead/heads/conversion/compare_speed.h"
#include "multihead/heads/conversion/convert_model.h"
#include "multihead/heads/conversion/prune_heads.h"

namespace mh::cli {

struct PruneReport {
  std::string model = {}, out = {};
  PrunePlan plan = {};
  SavedFormat format = {};
  NumberType type = NumberType::kFloat32;
  BeforeAfter<int64_t> parameters = {}, weight_bytes = {};  // bytes of the files of weights
  std::string compared_on = {};
  ModelDifference from_muted = {};  // from the given model with these heads muted
  ModelDifference difference = {};  // from the given model
  PassSeconds seconds = {};
};

std::string prune_table(const PruneReport& report);
std::string prune_json(const PruneReport& report);

}  // namespace mh::cli
