// The tables of flags in docs/verbs and docs/heads, that of options in docs/file-formats.md and that of kernels in docs/precision.md
// say what the descriptions of settings and the table of kernels say: `multihead pages DIR` writes them.
#include <gtest/gtest.h>

#include <filesystem>
#include <initializer_list>
#include <string>

#include "multihead/base/file.h"
#include "tests/cli/run_tool.h"
#include "tests/support/places.h"

namespace mh {
namespace {

void expect_current(const std::string& folder, std::initializer_list<const char*> names,
                    const std::string& group) {
  const std::filesystem::path pages = std::filesystem::path(source_folder()) / folder;
  ScratchFolder scratch;
  for (const auto& page : std::filesystem::directory_iterator(pages)) {
    if (page.is_regular_file()) std::filesystem::copy_file(page, scratch.path() / page.path().filename());
  }
  ASSERT_EQ(run_tool("pages '" + scratch.path().string() + "'").status, 0);
  for (const char* page : names) {
    const std::string now = read_file(scratch.path() / page);
    EXPECT_NE(now.find("<!-- flags: " + group + " -->\n| flag | default | |\n|---|---|---|\n| `--"),
              std::string::npos)
        << page;
    EXPECT_EQ(now, read_file(pages / page)) << "run multihead pages " << folder;
  }
}

TEST(Pages, TablesOfFlagsAreCurrent) {
  expect_current("docs/verbs", {"train.md", "ledger.md", "trace.md"}, "Heads");
  expect_current("docs/verbs", {"generate.md"}, "Next token");
  expect_current("docs/verbs", {"generate.md", "embed.md", "fill.md", "classify.md"}, "Text");
  expect_current("docs/verbs", {"score.md"}, "Windows of a text");
  expect_current("docs/verbs", {"tokenize.md"}, "Learn a tokenizer");
  expect_current("docs/verbs", {"bleu.md"}, "How BLEU is computed");
  expect_current("docs/verbs", {"bleu.md"}, "Significance by bootstrap resampling");
  expect_current("docs/verbs", {"translate.md"}, "Search");
  for (const char* group : {"A layer of a model", "A layer of your own", "A random layer"})
    expect_current("docs/verbs", {"trace.md"}, group);
  for (const char* group : {"Texts and models", "Reports", "A corpus", "The page"})
    expect_current("docs/verbs", {"view.md"}, group);
  expect_current("docs/heads", {"attribution.md"}, "Attribution");
  expect_current("docs/heads", {"attribution.md"}, "A corpus");
  expect_current("docs/heads", {"circuits.md"}, "Circuits");
  expect_current("docs/heads", {"importance.md"}, "Importance");
  expect_current("docs/heads", {"patch.md"}, "Patching");
  expect_current("docs/heads", {"prune.md"}, "Pruning");
  for (const char* group : {"Retrieval", "Limited heads"})
    expect_current("docs/heads", {"retrieval.md"}, group);
  expect_current("docs/heads", {"steer.md"}, "Direction");
  expect_current("docs/heads", {"relations.md"}, "Relations");
  expect_current("docs/heads", {"similar.md"}, "Similarity");
  expect_current("docs/heads", {"where.md"}, "Evidence");
}

TEST(Pages, OptionsOfReportsAreCurrent) {
  const std::string page = read_file(std::filesystem::path(source_folder()) / "docs/file-formats.md");
  const std::string mark = "<!-- options: heads -->\n";
  const size_t table = page.find(mark) + mark.size(), end = page.find("\n\n", table);
  EXPECT_NE(page.substr(table, end - table).find("\n| `importance` | `by`, `to`, `heads`, "),
            std::string::npos);
  ScratchFolder scratch;
  scratch.write("file-formats.md", page.substr(0, table) + page.substr(end + 1));
  ASSERT_EQ(run_tool("pages '" + scratch.path().string() + "'").status, 0);
  EXPECT_EQ(scratch.read("file-formats.md"), page) << "run multihead pages docs";
}

TEST(Pages, TheTableOfKernelsIsCurrent) {
  const std::string page = read_file(std::filesystem::path(source_folder()) / "docs/precision.md");
  const std::string mark = "<!-- kernels: all -->\n";
  const size_t table = page.find(mark) + mark.size(), end = page.find("\n\n", table);
  EXPECT_NE(
      page.substr(table, end - table)
          .find("\n| `near` | numbers | `bfloat16-dots` (AVX-512, AVX-512 BF16, made by AMD), `float32` |\n"),
      std::string::npos);
  ScratchFolder scratch;
  scratch.write("precision.md", page.substr(0, table) + page.substr(end + 1));
  ASSERT_EQ(run_tool("pages '" + scratch.path().string() + "'").status, 0);
  EXPECT_EQ(scratch.read("precision.md"), page) << "run multihead pages docs";
}

}  // namespace
}  // namespace mh
