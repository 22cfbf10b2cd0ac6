// HeadChanges override the fields of a description that were set, whichever fields there are.
#include "multihead/models/head_changes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "multihead/base/error.h"
#include "multihead/io/setting_visitor.h"

namespace mh {
namespace {

/// A description that differs from the usual one in every field.
HeadGeometry unusual() {
  HeadGeometry g;
  HeadGeometry::describe(g, [](const HeadField&, auto& value, const auto&... names) {
    using T = std::remove_cvref_t<decltype(value)>;
    if constexpr (sizeof...(names) > 0) {
      const auto& all = std::get<0>(std::tie(names...));
      for (const auto& [name, meaning] : all) {
        if (meaning != value) {
          value = meaning;
          break;
        }
      }
    } else if constexpr (std::is_same_v<T, HeadColumns>) {
      value = {{0, 2}, {1}};
    } else {
      value = T(1);
    }
  });
  return g;
}

TEST(HeadChanges, EveryFieldOfADescriptionCanBeGivenInAFile) {
  HeadGeometry wanted = unusual(), found;
  HeadChanges::of_json(to_json(wanted), "heads").apply(found);
  EXPECT_EQ(found, wanted);
}

struct Count : SettingVisitor<Count> {
  template <class T, class R>
  void setting(std::string_view name, const T&, const R&, const About& about) {
    names.emplace_back(name);
    EXPECT_STREQ(about.group, "Heads") << name;
    EXPECT_FALSE(about.help.empty()) << name;
    EXPECT_EQ(about.help.find("; 0:"), std::string::npos) << name << ": 0 cannot be given";
  }
  std::vector<std::string> names;
};

TEST(HeadChanges, EveryFieldButColumnsIsASetting) {
  HeadGeometry geometry;
  size_t fields = 0;
  HeadGeometry::describe(geometry, [&](const HeadField&, auto&, const auto&...) { ++fields; });
  Count count;
  HeadChanges().visit(count);
  EXPECT_EQ(count.names.size(), fields - 1);
  EXPECT_THAT(count.names, testing::IsSupersetOf({"d_key", "head_input", "qk_norm", "head_weights"}));
}

TEST(HeadChanges, OnlyWhatIsGivenIsChanged) {
  EXPECT_TRUE(HeadChanges().empty());
  const auto changes = HeadChanges::of_json(R"({"d_key": 24, "biases": "none"})", "heads");
  EXPECT_FALSE(changes.empty());
  HeadGeometry found{.heads = 3, .key_heads = 1, .scores = Scores::kTied};
  changes.apply(found);
  EXPECT_EQ(found,
            (HeadGeometry{
                .heads = 3, .d_key = 24, .key_heads = 1, .scores = Scores::kTied, .biases = Biases::kNone}));
}

TEST(HeadChanges, WhatIsTypedHasToBeASize) {
  EXPECT_THROW(HeadChanges::of_json(R"({"d_key": 0})", "typed"), FormatError);
  EXPECT_THROW(HeadChanges::of_json(R"({"d_key": 1025})", "typed"), FormatError);
  EXPECT_THROW(HeadChanges::of_json(R"({"d_keys": 3})", "typed"), FormatError);
  EXPECT_TRUE(HeadChanges::of_json(R"({"d_key": null, "scale": null})", "typed").empty());
}

}  // namespace
}  // namespace mh
