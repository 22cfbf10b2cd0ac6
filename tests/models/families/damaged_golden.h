// A copy of a golden folder that tests change: loading it must end in an error of one line.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "multihead/base/file.h"
#include "multihead/models/model_folder.h"
#include "tests/io/hostile.h"
#include "tests/models/folder_case.h"
#include "tests/support/scratch_folder.h"

namespace mh::test {

class DamagedGolden {
 public:
  DamagedGolden(const std::string& family, const std::string& name) : folder(scratch.path() / name) {
    std::filesystem::copy(std::filesystem::path(MULTIHEAD_TEST_DATA) / family / name, folder,
                          std::filesystem::copy_options::recursive);
    config_ = read_file(folder / "config.json");
  }
  void expect_error(std::string_view words) const {
    expect_one_line_error([&] { load_model_folder(folder); }, words, words);
  }
  /// Expects that error when config.json has this value.
  void with(const char* key, nlohmann::json value, std::string_view words) const {
    with([&](nlohmann::json& config) { config[key] = std::move(value); });
    expect_error(words);
  }
  /// Changes config.json as it was at first.
  void with(const std::function<void(nlohmann::json&)>& change) const {
    restore();
    edit_json(folder / "config.json", change);
  }
  void restore() const { write_file_atomically(folder / "config.json", config_); }

  const ScratchFolder scratch;
  const std::filesystem::path folder;

 private:
  std::string config_;
};

}  // namespace mh::test
