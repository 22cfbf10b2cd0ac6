#include "multihead/folders/replaced_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <string>
#include <system_error>

#include "multihead/base/error.h"
#include "multihead/base/file.h"
#include "multihead/folders/file_names.h"
#include "multihead/folders/json_file.h"
#include "multihead/io/safetensors.h"

namespace mh {
namespace {

namespace fs = std::filesystem;

/// Files only, or, of sentence-transformers, folders of modules with files only.
bool has_files_alone(const fs::path& folder, bool modules) {
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.is_regular_file()) continue;
    if (!modules || !entry.is_directory() || !has_files_alone(entry.path(), false)) return false;
  }
  return true;
}

bool is_model_folder(const fs::path& path) {
  return has_files_alone(path, is_there(path / "modules.json")) &&
         (is_there(path / kConfigFile) || is_there(path / kWeightsFile) ||
          is_there(path / kWeightsIndexFile));
}

bool has_our_weights(const fs::path& folder) {
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() != ".safetensors") continue;
    const SafetensorsFile file = SafetensorsFile::open(entry.path());
    const auto found = file.metadata().find(kWriterKey);
    if (found != file.metadata().end() && found->second == kWriter) return true;
  }
  return false;
}

/// Translators of versions that noted no writer. transformers copies the key, but adds its version.
bool has_our_config(const fs::path& folder) {
  if (!is_there(folder / kConfigFile)) return false;
  const JsonFile file(folder / kConfigFile);
  return file.root().find("multihead_files") && !file.root().find("transformers_version");
}

}  // namespace

bool is_written_here(const fs::path& folder) {
  std::error_code code;
  if (!fs::is_directory(folder, code)) return false;
  const auto holds = [&](bool (*test)(const fs::path&)) {
    try {
      return test(folder);
    } catch (const std::exception&) {  // what is damaged or cannot be read says nothing
      return false;
    }
  };
  return holds(has_our_weights) || holds(has_our_config);
}

void refuse_to_replace(const fs::path& path, Replace replace) {
  if (!is_there(path)) return;
  std::error_code code;
  const bool folder = fs::is_directory(path, code);
  if (folder && fs::is_empty(path, code)) return;
  const auto refuse = [&](const char* why) {
    throw FileError(fmt::format("cannot write the model to {}: {}", path.string(), why), EEXIST);
  };
  if (!folder) refuse("a file of that name exists; choose a new name");
  if (!is_model_folder(path)) refuse("the folder exists and holds something else; choose a new name");
  if (replace == Replace::kOwnFolders && !is_written_here(path))
    refuse(
        "it holds a model that multihead did not write; choose a new name, or allow that it is lost: "
        "`overwrite`");
}

}  // namespace mh
