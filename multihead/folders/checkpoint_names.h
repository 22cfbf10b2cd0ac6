// Where a training run keeps its checkpoints, beside the model that it makes: MODEL/checkpoints/update-N. Each
// is a model folder, so that reading one needs to know no more than this.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

namespace mh {

/// MODEL/checkpoints.
std::filesystem::path checkpoints_of(const std::filesystem::path& model);
/// MODEL/checkpoints/update-N: the model after N updates.
std::filesystem::path checkpoint_of(const std::filesystem::path& model, int64_t update);
/// The updates N of all such folders, rising; empty when there is none.
std::vector<int64_t> checkpoint_updates(const std::filesystem::path& model);

}  // namespace mh
