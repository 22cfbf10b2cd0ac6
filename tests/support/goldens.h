// The files that tests/oracles makes with other libraries.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/places.h"

namespace mh {

inline const std::filesystem::path kGoldens = goldens_folder();

/// "bert/masked" as the name of a test: "bert_masked".
inline std::string test_name_of(std::string folder) {
  for (char& c : folder) c = c == '/' ? '_' : c;
  return folder;
}

/// The folders of whole models among them; "_Dense" is a part of a sentence model.
inline std::vector<std::filesystem::path> golden_models() {
  std::vector<std::filesystem::path> folders;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(kGoldens)) {
    const std::filesystem::path folder = entry.path().parent_path();
    if (entry.path().filename() == "config.json" && std::filesystem::exists(folder / "model.safetensors") &&
        !folder.filename().string().ends_with("_Dense"))
      folders.push_back(folder);
  }
  return folders;
}

}  // namespace mh
