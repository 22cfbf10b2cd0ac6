// The words of published claims are those of this version: statements, remarks, what is asked, what the originals said.
// Figures differ, since the models here are tiny.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "lab/studies/study.h"
#include "multihead/base/file.h"
#include "multihead/io/config.h"
#include "tests/lab/studies/tiny_runner.h"
#include "tests/support/places.h"

namespace mh {
namespace {

struct PublishedClaims {
  const char* study;
  std::vector<std::string> claims;  // those whose words name no size; empty: all
};

class SlowPublishedWords : public testing::TestWithParam<PublishedClaims> {};

TEST_P(SlowPublishedWords, AreThoseOfThisVersion) {
  const std::filesystem::path file = std::filesystem::path(source_folder()) / "docs/answers/evidence" /
                                     (std::string(GetParam().study) + ".json");
  StudyReport kept;
  from_json(kept, read_file(file), file.string());
  test::TinyRunner runner(test::tiny_settings(), StudySize::kQuick);
  const StudyReport now = run_study(find_study(GetParam().study), *runner, GetParam().claims);
  ASSERT_FALSE(now.claims.empty());
  if (GetParam().claims.empty()) {
    EXPECT_EQ(now.claims.size(), kept.claims.size());
  }
  for (const Claim& claim : now.claims) {
    SCOPED_TRACE(claim.id);
    const Claim* then = nullptr;
    for (const Claim& one : kept.claims) {
      if (one.id == claim.id) then = &one;
    }
    ASSERT_NE(then, nullptr);
    EXPECT_EQ(then->statement, claim.statement);
    EXPECT_EQ(then->remark, claim.remark);
    EXPECT_EQ(then->original_words, claim.original_words);
    EXPECT_EQ(then->original_remark, claim.original_remark);
    ASSERT_EQ(then->clauses.size(), claim.clauses.size());
    for (size_t i = 0; i < claim.clauses.size(); ++i) {
      SCOPED_TRACE(clause_letter(i));
      EXPECT_EQ(then->clauses[i].statement, claim.clauses[i].statement);
      EXPECT_EQ(then->clauses[i].asked, claim.clauses[i].asked);
      EXPECT_EQ(then->clauses[i].kind, claim.clauses[i].kind);
      EXPECT_EQ(then->clauses[i].original, claim.clauses[i].original);
    }
    ASSERT_EQ(then->tables.size(), claim.tables.size());
    for (size_t i = 0; i < claim.tables.size(); ++i)
      EXPECT_EQ(then->tables[i].caption, claim.tables[i].caption);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Docs, SlowPublishedWords,
    testing::Values(PublishedClaims{"split-or-project", {}}, PublishedClaims{"diversity", {}},
                    PublishedClaims{"two-matrices-or-one", {"002.1", "002.3", "002.5", "002.7", "002.8"}},
                    PublishedClaims{"unique-heads", {"003.1", "003.2", "003.3", "003.6", "003.7"}},
                    PublishedClaims{"one-product", {"004.1", "004.3", "004.4", "004.5", "004.6"}}),
    [](const testing::TestParamInfo<PublishedClaims>& one) {
      std::string name(one.param.study);
      for (char& c : name) c = c == '-' ? '_' : c;
      return name;
    });

}  // namespace
}  // namespace mh
