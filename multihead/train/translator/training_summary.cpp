#include "multihead/train/translator/training_summary.h"

#include "multihead/base/error.h"
#include "multihead/base/file.h"
#include "multihead/io/config.h"

namespace mh {
namespace {

constexpr const char* kSummary = "training.json";

}  // namespace

std::optional<TrainingSummary> read_training_summary(const std::filesystem::path& model) {
  for (const char* file : {kSummary, "config.json", "model.safetensors"}) {
    if (!std::filesystem::exists(model / file)) return std::nullopt;
  }
  try {
    TrainingSummary summary;
    from_json(summary, read_regular_file(model / kSummary), (model / kSummary).string());
    return summary;
  } catch (const FormatError&) {
    return std::nullopt;
  }
}

void write_training_summary(const std::filesystem::path& model, const TrainingSummary& summary) {
  write_file_atomically(model / kSummary, to_json(summary));
}

}  // namespace mh
