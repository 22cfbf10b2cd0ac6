#include "multihead/train/folder_lock.h"

#include <gmock/gmock.h>

#include "multihead/base/error.h"
#include "tests/support/holding_process.h"
#include "tests/support/scratch_folder.h"

namespace mh {
namespace {

using testing::HasSubstr;
using namespace std::chrono_literals;

TEST(FolderLock, IsWaitedForWhileItsHolderEnds) {
  const test::ScratchFolder folder;
  const auto file = folder.path() / ".lock";
  const test::HoldingProcess holder(file, 1s);
  std::vector<std::string> remarks;
  const LockWait wait{.longest = 60s, .remark = [&](const std::string& line) { remarks.push_back(line); }};
  { const FolderLock lock(file, folder.path(), wait); }
  ASSERT_EQ(remarks.size(), 1u);
  EXPECT_THAT(remarks[0], HasSubstr("waiting for it to end"));
  { const FolderLock lock(file, folder.path(), wait); }  // free again
  EXPECT_EQ(remarks.size(), 1u);
}

TEST(FolderLock, IsRefusedWhenItsHolderStays) {
  const test::ScratchFolder folder;
  const auto file = folder.path() / ".lock";
  const FolderLock mine(file, folder.path(), {});
  try {
    const FolderLock another(file, folder.path(), {.longest = 30ms});
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("another process is training in " + folder.path().string()));
  }
}

}  // namespace
}  // namespace mh
