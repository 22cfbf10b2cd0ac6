// Names of heads and patterns of them: what a pattern fits, and which gate of several counts.
#include "multihead/nn/head_name.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>
#include <string>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/base/random.h"
#include "multihead/heads/sites/site_values.h"

namespace mh {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::ThrowsMessage;

TEST(HeadPattern, FitsNamesWithAnyCharactersInPlaceOfAStar) {
  const auto fits = [](const char* pattern, const char* attention, int head) {
    return HeadPattern(pattern).matches(attention, head);
  };
  EXPECT_TRUE(fits("encoder.3.self_attention.1", "encoder.3.self_attention", 1));
  EXPECT_FALSE(fits("encoder.3.self_attention.1", "encoder.3.self_attention", 11));
  EXPECT_FALSE(fits("encoder.3.self_attention.1", "encoder.13.self_attention", 1));
  EXPECT_TRUE(fits("encoder.3.self_attention.*", "encoder.3.self_attention", 17));
  EXPECT_FALSE(fits("encoder.3.self_attention.*", "encoder.13.self_attention", 0));
  EXPECT_TRUE(fits("*.cross_attention.*", "decoder.5.cross_attention", 2));
  EXPECT_FALSE(fits("*.cross_attention.*", "decoder.5.self_attention", 2));
  EXPECT_TRUE(fits("*.self_attention.0", "decoder.5.self_attention", 0));
  EXPECT_FALSE(fits("*.self_attention.0", "decoder.5.self_attention", 10));
  EXPECT_TRUE(fits("encoder.*", "encoder.0.self_attention", 3));
  EXPECT_FALSE(fits("encoder.*", "decoder.0.self_attention", 3));
  EXPECT_TRUE(fits("*", "decoder.0.self_attention", 3));
  EXPECT_FALSE(fits("encoder.*.self_attention", "encoder.0.self_attention", 3));
}

// The oracle is a regular expression with .* in place of each star.
TEST(HeadPattern, IsARegularExpressionWithAnythingForEachStar) {
  Random random(5);
  const std::string letters = "ab.1*";
  int fitted = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string pattern = "*", attention;
    for (uint32_t i = random.below(7); i > 0; --i) pattern += letters[random.below(5)];
    if (random.below(2) == 0) pattern.erase(0, 1), pattern += '*';
    for (uint32_t i = 1 + random.below(7); i > 0; --i) attention += letters[random.below(4)];
    const int head = static_cast<int>(random.below(13));
    std::string expression;
    for (const char c : pattern) expression += c == '*' ? ".*" : c == '.' ? "\\." : std::string(1, c);
    const bool expected = std::regex_match(attention + "." + std::to_string(head), std::regex(expression));
    EXPECT_EQ(HeadPattern(pattern).matches(attention, head), expected)
        << pattern << " " << attention << "." << head;
    fitted += expected;
  }
  EXPECT_GT(fitted, 300);
  EXPECT_LT(fitted, 2700);
}

TEST(HeadName, IsWrittenAsItIsRead) {
  EXPECT_EQ(parse_head_name("encoder.3.self_attention.12").name(), "encoder.3.self_attention.12");
}

TEST(HeadPattern, RefusesWhatIsNeitherNameNorPattern) {
  for (const char* wrong : {"", ".", "encoder.3.self_attention", "encoder.3.self_attention.x",
                            "encoder.3.self_attention.-1", "encoder.3.self_attention.65536", ".1"}) {
    EXPECT_THAT([&] { HeadPattern pattern(wrong); },
                ThrowsMessage<UsageError>(HasSubstr("expected an attention and a head's number")))
        << wrong;
  }
  EXPECT_THROW(parse_head_name("encoder.3.self_attention.*"), UsageError);
}

TEST(SiteValues, TheLastOfSeveralGatesForAHeadCounts) {
  const auto gates = [&](SiteValues& changes, const char* attention, int heads) {
    Tape tape;
    Tensor ones(2, heads);
    ones.fill(1);
    const Site site{attention, SitePart::kGates};
    const Var found = changes.at(tape, site, {.value = tape.constant(ones.view()), .blocks = heads});
    for (int h = 0; h < heads; ++h) EXPECT_EQ(found.value()(0, h), found.value()(1, h));
    return std::vector<float>(found.value().data, found.value().data + heads);
  };
  SiteValues changes;
  EXPECT_TRUE(changes.empty());
  changes.mute("encoder.1.self_attention.*");
  EXPECT_FALSE(changes.empty());
  EXPECT_THAT(gates(changes, "encoder.1.self_attention", 3), ElementsAre(0, 0, 0));
  EXPECT_THAT(gates(changes, "encoder.0.self_attention", 3), ElementsAre(1, 1, 1));
  changes.set_gate("encoder.1.self_attention.2", 0.5f);
  EXPECT_THAT(gates(changes, "encoder.1.self_attention", 3), ElementsAre(0, 0, 0.5f));
  changes.set_gate("*.1", 2);
  EXPECT_THAT(gates(changes, "encoder.1.self_attention", 3), ElementsAre(0, 2, 0.5f));
  EXPECT_THAT(gates(changes, "decoder.4.cross_attention", 2), ElementsAre(1, 2));
  changes.mute("encoder.1.self_attention.*");  // said again, it is the last
  EXPECT_THAT(gates(changes, "encoder.1.self_attention", 3), ElementsAre(0, 0, 0));
  EXPECT_EQ(changes.heads_asked().size(), 3u);
  changes.mute("encoder.1.self_attention.3");
  EXPECT_THROW(gates(changes, "encoder.1.self_attention", 3), UsageError);
  EXPECT_THAT(gates(changes, "encoder.1.self_attention", 4), ElementsAre(0, 0, 0, 0));
  EXPECT_THROW(changes.set_gate("encoder.1.self_attention.3", std::nanf("")), UsageError);
}

}  // namespace
}  // namespace mh
