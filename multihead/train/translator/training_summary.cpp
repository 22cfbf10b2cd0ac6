#include "multihead/train/translator/training_summary.h"

#include <fmt/format.h>

#include "multihead/base/error.h"
#include "multihead/base/file.h"
#include "multihead/folders/model_folder.h"
#include "multihead/io/config.h"
#include "multihead/models/head_gates.h"

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

std::string list_closed_heads(const std::filesystem::path& model, float head_gates) {
  const ModelFolder folder = load_model_folder(model);
  int64_t heads = 0;
  for (const auto& attention : folder.model->attentions()) heads += attention.heads;
  const std::vector<std::string> closed = closed_heads(*folder.model);
  std::string list;
  for (const std::string& head : closed) list += head + "\n";
  const std::filesystem::path file = model / "closed_heads.txt";
  write_file_atomically(file, list);
  if (std::ssize(closed) == heads) {
    return fmt::format(
        "`head_gates` {} closed all {} heads, so that no attention is left; a smaller one keeps some",
        head_gates, heads);
  }
  return fmt::format("{} of {} heads are closed; {} names them, for multihead heads prune --heads-from",
                     closed.size(), heads, file.string());
}

}  // namespace mh
