#include "multihead/train/translator/training_settings.h"

#include <fmt/format.h>

#include <string>

#include "multihead/base/error.h"
#include "multihead/base/file.h"
#include "multihead/folders/checkpoint_names.h"
#include "multihead/folders/shipped_folder.h"
#include "multihead/io/config.h"

namespace mh {
namespace {

namespace fs = std::filesystem;

fs::path settings_file(const fs::path& model) {
  return checkpoints_of(model) / "settings.json";
}

std::string absolute_path(const std::string& path) {
  return path.empty() ? path : fs::absolute(path).lexically_normal().string();
}

}  // namespace

std::string settled_folder(const std::string& init_from) {
  return is_shipped(init_from) ? init_from : absolute_path(init_from);
}

std::optional<TranslatorSettings> kept_settings(const fs::path& model) {
  const fs::path file = settings_file(model);
  std::error_code code;
  if (model.empty() || !fs::exists(file, code)) return std::nullopt;
  TranslatorSettings settings;
  try {
    from_json(settings, read_regular_file(file), file.string());
  } catch (const FormatError& error) {
    throw FormatError(fmt::format("{}; remove it and give all settings of the run again", error.what()));
  }
  settings.model = model.string();
  return settings;
}

void keep_settings(const TranslatorSettings& settings) {
  TranslatorSettings kept = settings;
  kept.model.clear();  // the folder may be moved
  for (std::string* path :
       {&kept.train_source, &kept.train_target, &kept.valid_source, &kept.valid_target, &kept.tokenizer})
    *path = absolute_path(*path);
  kept.init_from = settled_folder(kept.init_from);
  write_file_atomically(settings_file(settings.model), to_json(kept));
}

}  // namespace mh
