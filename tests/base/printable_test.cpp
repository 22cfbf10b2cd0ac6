// Texts from outside where people read them: in messages and in the cells of tables.
#include <gtest/gtest.h>

#include <string>

#include "multihead/base/error.h"
#include "multihead/base/terminal_text.h"

namespace mh {
namespace {

TEST(Printable, ANulDoesNotEndAMessage) {
  const std::string text("a\0b", 3);
  EXPECT_STREQ(UsageError("no token '" + text + "'; take another").what(),
               "no token 'a\\u0000b'; take another");
  EXPECT_STREQ(FileError(text, 2).what(), "a\\u0000b");
  EXPECT_STREQ(FormatError("plain").what(), "plain");
}

TEST(Printable, ACellHasNothingThatMovesOrTurnsTheLine) {
  EXPECT_EQ(cell_text("obj\u202eabc", 13), "obj.abc");
  EXPECT_EQ(cell_text("a\nb\x1b[31mc\u2028d\u0085", 20), "a.b.[31mc.d.");
  EXPECT_EQ(cell_text("h\u00fcgel \u6f22", 20), "h\u00fcgel \u6f22");
  EXPECT_EQ(cell_text("12345", 4), "123\u2026");
}

}  // namespace
}  // namespace mh
