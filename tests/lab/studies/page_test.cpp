// The answer in a minute, for a terminal.
#include "lab/studies/page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "lab/studies/study.h"
#include "multihead/base/terminal_text.h"

namespace mh {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(MarkdownForTerminal, KeepsWordsCodeAndTablesAndLeavesOutTheRest) {
  const std::string page = markdown_for_terminal(
      "# A question?\n\nA sentence.\nThe **next** [0.5 ± 0.1](page.md).\n\n"
      "```python\nx = [1,\n     2]\n```\n\n![a picture](picture.svg)\n\n- one\n  item\n- two\n\n"
      "| how | numbers |\n|---|---:|\n| a [link](b.md) | 12 |\n\n## See\n\nThe end.\n",
      "the picture\n");
  EXPECT_EQ(page,
            "A question?\n\nA sentence. The next 0.5 ± 0.1.\n\n    x = [1,\n         2]\n\nthe picture\n\n"
            "- one item\n- two\n\n  how     numbers\n  a link       12\n\nSee\n\nThe end.\n\n");
}

TEST(MarkdownForTerminal, BreaksLongLines) {
  std::string words;
  for (int i = 0; i < 40; ++i) words += "words ";
  std::istringstream lines(markdown_for_terminal("- " + words + "\n", ""));
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) EXPECT_LE(display_width(line), 80);
  EXPECT_EQ(count, 5) << "four lines and an empty one";
}

TEST(PageForTerminal, HasTheQuestionThePictureAndNothingForMarkdown) {
  int pages = 0;
  for (const Study& study : studies()) {
    SCOPED_TRACE(study.name);
    const std::string page = page_for_terminal(study.name);
    if (page.empty()) continue;
    ++pages;
    EXPECT_TRUE(page.starts_with(wrapped(study.question)));
    EXPECT_THAT(page, testing::AnyOf(HasSubstr("█"), HasSubstr("▓")));
    std::istringstream lines(page);
    for (std::string line; std::getline(lines, line);) {
      EXPECT_LE(display_width(line), 80) << line;
      if (line.starts_with("    ")) continue;  // code, whose ** is a power
      for (const char* sign : {"<span", "](", "**", "```", "!["}) EXPECT_THAT(line, Not(HasSubstr(sign)));
    }
  }
  EXPECT_EQ(pages, 5);
  EXPECT_EQ(page_for_terminal("table3"), "");
}

}  // namespace
}  // namespace mh
