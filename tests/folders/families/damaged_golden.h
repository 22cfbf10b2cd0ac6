// A copy of a golden folder that tests change: loading it must end in an error of one line.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "multihead/base/error.h"
#include "multihead/base/file.h"
#include "multihead/folders/model_folder.h"
#include "tests/folders/folder_case.h"
#include "tests/support/places.h"
#include "tests/support/scratch_folder.h"

namespace mh::test {

class DamagedGolden {
 public:
  DamagedGolden(const std::string& family, const std::string& name) : folder(scratch.path() / name) {
    std::filesystem::copy(std::filesystem::path(goldens_folder()) / family / name, folder,
                          std::filesystem::copy_options::recursive);
    config_ = read_file(folder / "config.json");
  }
  void expect_error(const std::string& words) const {
    try {
      load_model_folder(folder);
      ADD_FAILURE() << "expected: " << words;
    } catch (const Error& error) {  // perhaps a long one, which lists all differences
      EXPECT_THAT(error.what(), testing::HasSubstr(words));
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
    }
  }
  /// Expects that error when config.json has this value.
  void with(const char* key, nlohmann::json value, const std::string& words) const {
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
