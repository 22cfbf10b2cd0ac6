#include "cli/load_model.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>

#include "cli/common.h"
#include "multihead/base/error.h"
#include "multihead/base/file.h"

namespace mh::cli {

ModelFolder load_model(const std::string& path) {
  ModelFolder folder = load_model_folder(path);
  if (const std::string line = folder.remark(); !line.empty()) remark(line);
  return folder;
}

ScoredModel load_scored(const std::string& path) {
  ScoredModel model = load_scored_model(path);
  for (const std::string& line : model.remarks()) remark(line);
  return model;
}

ModelFolder load_translator(const std::string& path, std::string_view verb, std::string_view instead) {
  ModelFolder folder = load_model(path);
  if (folder.model->kind() == ModelKind::kTranslator) return folder;
  throw UsageError(
      fmt::format("{} holds a {} model, but {} takes the folder of a translator (made by multihead train, or "
                  "Marian's); {}",
                  path, folder.model_type, verb, instead));
}

void check_new_folder(const std::string& out) {
  std::error_code code;
  if (std::filesystem::exists(out, code))
    throw UsageError(fmt::format("--out {} exists; name a new folder, so that no model is lost", out));
  check_can_write_folder(out);
}

}  // namespace mh::cli
