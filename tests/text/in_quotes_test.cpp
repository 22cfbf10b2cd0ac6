#include "multihead/text/in_quotes.h"

#include <gtest/gtest.h>

#include <string>

namespace mh {
namespace {

TEST(InQuotes, CutsWhereItIsTold) {
  const std::string name(41, 'n');
  EXPECT_EQ(in_quotes(name), "'" + name.substr(1) + "\u2026'");
  EXPECT_EQ(in_quotes(name, kWholeName), "'" + name + "'");
  EXPECT_EQ(in_quotes(name, 3), "'nnn\u2026'");
  EXPECT_EQ(in_quotes("\u00FC\u00FC\u00FC", 3), "'\u00FC\u00FC\u00FC'");
  EXPECT_EQ(in_quotes("a\n\u202Eb"), "'a\\u000a\\u202eb'");
}

}  // namespace
}  // namespace mh
