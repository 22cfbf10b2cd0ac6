// What users read about families: the table of docs/models.md has a row for each.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "multihead/base/file.h"
#include "multihead/folders/family.h"
#include "tests/support/places.h"

namespace mh {
namespace {

TEST(ModelsPage, HasEveryFamilyAndNoOther) {
  const std::string page = read_file(std::filesystem::path(source_folder()) / "docs" / "models.md");
  for (const Family* family : families()) {
    const std::string row =
        "\n| `" + std::string(family->model_type) + "` | " + std::string(family->what) + " | ";
    EXPECT_NE(page.find(row), std::string::npos) << "docs/models.md lacks the row" << row;
  }
  size_t rows = 0;
  for (size_t at = page.find("\n| `"); at != std::string::npos; at = page.find("\n| `", at + 1)) ++rows;
  EXPECT_EQ(rows, 1 + families().size());  // with the head of the table
}

}  // namespace
}  // namespace mh
