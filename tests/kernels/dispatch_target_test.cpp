// The choice of the instruction set that kernels run. With MULTIHEAD_TARGET=AVX2 (or portable, ...) in the
// environment, all tests of this program run on that target.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "multihead/base/error.h"
#include "multihead/kernels/simd.h"

namespace mh {
namespace {

std::string wanted_target() {
  const char* name = std::getenv("MULTIHEAD_TARGET");
  return name == nullptr || *name == '\0' ? "best" : name;
}

class TargetOfTheEnvironment : public testing::Environment {
 public:
  void SetUp() override {
    const std::string wanted = wanted_target();
    const auto all = dispatch_targets();
    if (wanted.starts_with("AVX") && std::find(all.begin(), all.end(), wanted) == all.end()) {
      GTEST_SKIP() << "no " << wanted << " instructions here";
    }
    use_dispatch_target(wanted);
  }
};
const auto* const kEnvironment = testing::AddGlobalTestEnvironment(new TargetOfTheEnvironment);

TEST(DispatchTarget, IsTheOneAskedForAndCanBeChanged) {
  const auto all = dispatch_targets();
  ASSERT_FALSE(all.empty());
  const std::string before = wanted_target();
  EXPECT_EQ(dispatch_target(), before == "best" ? all.front() : before == "portable" ? all.back() : before);
  for (const auto& name : all) {
    use_dispatch_target(name);
    EXPECT_EQ(dispatch_target(), name);
  }
  use_dispatch_target("portable");
  EXPECT_EQ(dispatch_target(), all.back());
  use_dispatch_target("best");
  EXPECT_EQ(dispatch_target(), all.front());
  use_dispatch_target(before);
}

TEST(DispatchTarget, AnUnknownOneIsAnErrorThatNamesTheOthers) {
  try {
    use_dispatch_target("AVX9");
    FAIL();
  } catch (const UsageError& e) {
    EXPECT_THAT(e.what(),
                testing::AllOf(testing::HasSubstr("AVX9"), testing::HasSubstr(dispatch_targets().back())));
  }
}

}  // namespace
}  // namespace mh
