// What transformers computed with the small GPT-2 of tests/goldens/generate (tests/oracles/generate_goldens.py).
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "multihead/base/file.h"
#include "tests/support/places.h"

namespace mh::test {

inline std::filesystem::path generate_folder() {
  return std::filesystem::path(goldens_folder()) / "generate" / "gpt2";
}

inline const nlohmann::json& generate_golden() {
  static const nlohmann::json golden =
      nlohmann::json::parse(read_file(generate_folder().parent_path() / "expected.json"));
  return golden;
}

}  // namespace mh::test
