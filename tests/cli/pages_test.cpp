// The tables of flags in docs/verbs say what the tables of settings say: `multihead pages docs/verbs` writes
// them.
#include <gtest/gtest.h>

#include <filesystem>

#include "multihead/base/file.h"
#include "tests/cli/run_tool.h"
#include "tests/support/places.h"

namespace mh {
namespace {

TEST(Pages, TablesOfFlagsAreCurrent) {
  const std::filesystem::path pages = std::filesystem::path(source_folder()) / "docs/verbs";
  ScratchFolder scratch;
  for (const auto& page : std::filesystem::directory_iterator(pages))
    std::filesystem::copy_file(page, scratch.path() / page.path().filename());
  ASSERT_EQ(run_tool("pages '" + scratch.path().string() + "'").status, 0);
  for (const char* page : {"train.md", "ledger.md", "trace.md"}) {
    const std::string now = read_file(scratch.path() / page);
    EXPECT_NE(now.find("<!-- flags: Heads -->\n| flag | default | |\n"), std::string::npos) << page;
    EXPECT_EQ(now, read_file(pages / page)) << "run multihead pages docs/verbs";
  }
}

}  // namespace
}  // namespace mh
