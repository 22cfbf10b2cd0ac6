// The files of a model that a live page holds.
#include "multihead/heads/reports/page/live_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "multihead/base/error.h"
#include "multihead/base/file.h"
#include "tests/support/places.h"
#include "tests/support/scratch_folder.h"

namespace mh {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::ThrowsMessage;

const fs::path kShards = fs::path(goldens_folder()) / "llama/untied_biased_linear_bf16";

TEST(LiveModel, HoldsEachShardAndTheIndex) {
  const LiveFiles files = live_files(load_model_folder(kShards));
  size_t shards = 0;
  for (const auto& [name, bytes] : files) {
    EXPECT_EQ(bytes, read_file(kShards / name)) << name;
    shards += name.ends_with(".safetensors") ? 1 : 0;
  }
  EXPECT_GT(shards, 1u);
  EXPECT_TRUE(files.contains("config.json"));
  EXPECT_TRUE(files.contains("model.safetensors.index.json"));
}

TEST(LiveModel, RefusesAnAdapterBesideTheWeights) {
  const test::ScratchFolder scratch;
  const fs::path folder = scratch.path() / "adapted";
  fs::copy(kShards, folder);
  const ModelFolder read = load_model_folder(folder);
  write_file_atomically(folder / "adapter_config.json", "{}");
  EXPECT_THAT([&] { live_files(read); },
              ThrowsMessage<UsageError>(HasSubstr("save them as one model first")));
}

}  // namespace
}  // namespace mh
