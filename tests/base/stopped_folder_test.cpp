// A folder whose writing is asked to stop.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/base/file.h"
#include "multihead/base/stop.h"
#include "tests/support/scratch_folder.h"

namespace mh {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

// Asked to stop at the first look, the second, ... until it comes through: nothing half is ever left.
TEST(FolderWriter, StoppedItLeavesNothing) {
  const test::ScratchFolder folder;
  const fs::path model = folder.path() / "deep" / "model";
  const std::string large(40'000'000, 'n');  // pieces of which the writer looks at the question between
  int looks = 0;
  for (int allowed = 0;; ++allowed) {
    looks = 0;
    try {
      const StopScope scope([&] { return looks++ == allowed; });
      FolderWriter writer(model);
      writer.add("a", "1");
      writer.add("large", large);
      writer.commit();
      break;
    } catch (const Interrupted& stopped) {
      EXPECT_EQ(stopped.what(), "stopped; " + model.string() + " was not written");
      EXPECT_EQ(looks, allowed + 1);
    }
    ASSERT_THAT(names_in(folder.path()), IsEmpty());
    ASSERT_LT(allowed, 100);
  }
  EXPECT_GE(looks, 2 + 1 + 3 + 1);  // before each file and commit(), and before each piece
  EXPECT_EQ(read_file(model / "large"), large);
  const StopScope scope([] { return true; });
  EXPECT_THROW(FolderWriter(model).add("b", "2"), Interrupted);
  EXPECT_THAT(names_in(model), ElementsAre("a", "large"));
  EXPECT_THAT(names_in(model.parent_path()), ElementsAre("model"));
}

}  // namespace
}  // namespace mh
