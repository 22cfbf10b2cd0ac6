// A warning that is always there is read by nobody: folders as transformers saves them, and the models that the tests compare
// with, give no remark about keys.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "multihead/base/file.h"
#include "multihead/folders/family.h"
#include "multihead/folders/file_names.h"
#include "multihead/folders/generation_keys.h"
#include "multihead/folders/model_folder.h"
#include "multihead/folders/sentence_model.h"
#include "tests/support/places.h"

namespace mh {
namespace {

using testing::HasSubstr;
using testing::Not;

const std::filesystem::path kFoldersOfTests = goldens_folder();

// config.json and generation_config.json with the defaults of each class; tests/oracles/saved_by_default.py makes them.
TEST(NoRemark, OnWhatTransformersSavesByDefault) {
  int versions = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kFoldersOfTests / "config_keys")) {
    const std::string file = entry.path().filename().string();
    if (!file.starts_with("saved_")) continue;
    ++versions;
    const auto saved = nlohmann::json::parse(read_file(entry.path()));
    const size_t later = file == "saved_4.57.6.json" ? 1 : 0;  // Nomic BERT came with transformers 5
    EXPECT_EQ(saved.size() + 1 + later, families().size()) << "all but our own";
    for (const auto& [family, files] : saved.items()) {
      EXPECT_THAT(read_plan(files[kConfigFile].dump(), kConfigFile).remarks, testing::IsEmpty())
          << file << ", " << family;
      if (!files.contains(kGenerationConfigFile)) continue;
      const nlohmann::json& config = files[kConfigFile];
      const auto id = [&config](const char* key) {
        const auto found = config.find(key);
        return found != config.end() && found->is_number() ? found->get<int32_t>() : -1;
      };
      const bool translates = config.value("is_encoder_decoder", false);
      EXPECT_EQ(generation_remark(files[kGenerationConfigFile].dump(), kGenerationConfigFile,
                                  {.source_vocabulary = translates ? 7 : 0,
                                   .eos_id = id("eos_token_id"),
                                   .start_id = id("decoder_start_token_id")}),
                "")
          << file << ", " << family;
    }
  }
  EXPECT_EQ(versions, 2);  // 4.57 and 5
}

TEST(NoRemark, OnTheFoldersOfTheOtherTests) {
  int folders = 0;
  for (const Family* family : families()) {
    const auto models = kFoldersOfTests / family->model_type;
    if (!std::filesystem::is_directory(models)) continue;
    for (const auto& entry : std::filesystem::directory_iterator(models)) {
      if (!std::filesystem::exists(entry.path() / kConfigFile)) continue;
      ++folders;
      const ModelFolder folder = load_model_folder(entry.path());
      EXPECT_THAT(folder.remark(), Not(HasSubstr("not used"))) << entry.path();
      EXPECT_EQ(folder.generation_remark, "") << entry.path();
    }
  }
  EXPECT_GT(folders, 25);
  EXPECT_EQ(load_model_folder("demo").generation_remark, "");
}

TEST(SlowNoRemark, OnMiniLmAndSmolLm2) {
  const char* models = std::getenv("MULTIHEAD_MODELS");
  if (models == nullptr) GTEST_SKIP() << "set MULTIHEAD_MODELS to the folder that scripts/models made";
  EXPECT_THAT(load_sentence_model(std::filesystem::path(models) / "minilm").remarks, testing::IsEmpty());
  const ModelFolder folder = load_model_folder(std::filesystem::path(models) / "smollm2.gguf");
  EXPECT_EQ(folder.remark(), "");
  EXPECT_EQ(folder.generation_remark, "");
}

}  // namespace
}  // namespace mh
