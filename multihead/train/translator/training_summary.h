// What a finished run writes beside its model: training.json, how it ended, and closed_heads.txt, which heads its
// gates closed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "multihead/train/training_state.h"

namespace mh {

struct TrainingSummary {
  int64_t updates = 0;
  std::string end;
  std::vector<int64_t> averaged;
  std::optional<Validation> final;
  std::vector<Setting> settings;

  template <class V>
  void visit(V& v) {
    v("updates", updates, {.low = 0, .required = true});
    v("end", end);
    v("averaged", averaged, {.low = 0, .required = true});
    v("final", final);
    v("settings", settings);
  }
};

/// Nothing when the folder has no finished model, or its training.json is damaged: then the end is made again.
std::optional<TrainingSummary> read_training_summary(const std::filesystem::path& model);
/// Throws FileError.
void write_training_summary(const std::filesystem::path& model, const TrainingSummary& summary);

/// Writes the names of the heads that gates of this price closed, as `heads prune --heads-from` takes them.
/// Returns a line for the user.
std::string list_closed_heads(const std::filesystem::path& model, float head_gates);

}  // namespace mh
