// Codes of ISO 639 for one language.
#include "multihead/folders/language_names.h"

#include <gtest/gtest.h>

#include <utility>

namespace mh {
namespace {

TEST(SameLanguage, ByTwoLettersAndByThree) {
  for (const auto& [two, three] : {std::pair("de", "deu"), std::pair("zh", "zho"), std::pair("zu", "zul"),
                                   std::pair("af", "afr"), std::pair("ns", "nso")}) {
    EXPECT_TRUE(same_language(two, three)) << two;
    EXPECT_TRUE(same_language(three, two)) << two;
  }
  EXPECT_TRUE(same_language("vec", "vec"));  // in no table
  EXPECT_FALSE(same_language("de", "nld"));
  EXPECT_FALSE(same_language("", "deu"));
  EXPECT_FALSE(same_language("de deu", "de"));
  EXPECT_FALSE(same_language("e", "en"));
}

// ISO 639-3 calls them macrolanguages.
TEST(SameLanguage, WhereOneNameStandsForSeveral) {
  for (const char* all : {"no", "nor"}) {
    EXPECT_TRUE(same_language(all, "nob"));
    EXPECT_TRUE(same_language("nno", all));
  }
  EXPECT_FALSE(same_language("nob", "nno"));
  EXPECT_TRUE(same_language("nb", "nob"));
  EXPECT_FALSE(same_language("nb", "nno"));
  EXPECT_TRUE(same_language("ar", "arb"));
  EXPECT_TRUE(same_language("ara", "arb"));
  EXPECT_FALSE(same_language("ar", "arz"));  // Egyptian Arabic
  EXPECT_FALSE(same_language("zh", "yue"));
}

}  // namespace
}  // namespace mh
