// Tables of names: a value's name, and a name's value.
#include "multihead/base/enum_names.h"

#include <gtest/gtest.h>

#include <optional>

namespace mh {
namespace {

enum class Fruit { kApple, kPear, kPlum };
constexpr EnumNames<Fruit> kFruits = {
    {"apple", Fruit::kApple}, {"pear", Fruit::kPear}, {"pomme", Fruit::kApple}};

TEST(EnumNames, GiveTheFirstNameOfAValueAndTheValueOfEachName) {
  EXPECT_STREQ(name_of(Fruit::kApple, kFruits), "apple");
  EXPECT_STREQ(name_of(Fruit::kPlum, kFruits), "");
  EXPECT_EQ(value_named("pear", kFruits), Fruit::kPear);
  EXPECT_EQ(value_named("pomme", kFruits), Fruit::kApple);
  for (const char* none : {"", "plum", "Pear", "pea", "pears"})
    EXPECT_EQ(value_named(none, kFruits), std::nullopt) << none;
}

TEST(EnumNames, AreListedInTheirOrder) {
  EXPECT_EQ(names_listed(kFruits), "apple|pear|pomme");
  EXPECT_EQ(names_listed(kFruits, ", "), "apple, pear, pomme");
}

}  // namespace
}  // namespace mh
