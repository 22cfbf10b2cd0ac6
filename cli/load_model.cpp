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

namespace {

constexpr const char* kTranslator = "a translator (made by multihead train, or Marian's)";

[[noreturn]] void refuse_kind(const ModelFolder& folder, const std::string& path, std::string_view verb,
                              const std::string& takes, std::string_view instead) {
  throw UsageError(fmt::format("{} holds a {} model, but {} takes the folder of {}; {}", path,
                               folder.model_type, verb, takes, instead));
}

}  // namespace

ModelFolder load_translator(const std::string& path, std::string_view verb, std::string_view instead) {
  ModelFolder folder = load_model(path);
  if (folder.model->kind() == ModelKind::kTranslator) return folder;
  refuse_kind(folder, path, verb, kTranslator, instead);
}

ModelFolder load_translator_or_causal(const std::string& path, std::string_view verb,
                                      std::string_view instead) {
  ModelFolder folder = load_model(path);
  if (folder.model->kind() == ModelKind::kTranslator || folder.model->kind() == ModelKind::kCausal)
    return folder;
  refuse_kind(folder, path, verb, std::string(kTranslator) + " or a causal model", instead);
}

void check_new_folder(const std::string& out) {
  std::error_code code;
  if (std::filesystem::exists(out, code))
    throw UsageError(fmt::format("--out {} exists; name a new folder, so that no model is lost", out));
  check_can_write_folder(out);
}

}  // namespace mh::cli
