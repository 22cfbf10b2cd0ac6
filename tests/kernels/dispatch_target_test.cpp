// Which instructions the kernels run. With MULTIHEAD_TARGET=AVX2 (or portable, ...) in the environment, all
// tests of this program run on that target.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "multihead/base/error.h"
#include "multihead/kernels/simd.h"

namespace mh {
namespace {

std::string wanted_target() {
  const char* name = std::getenv("MULTIHEAD_TARGET");
  return name == nullptr || *name == '\0' ? dispatch_targets().front() : name;
}

class TargetOfTheEnvironment : public testing::Environment {
 public:
  void SetUp() override {
    wanted_ = wanted_target();
    const auto all = dispatch_targets();
    if (wanted_ != "portable" && std::find(all.begin(), all.end(), wanted_) == all.end()) {
      GTEST_SKIP() << "no " << wanted_ << " instructions here";
    }
    use_dispatch_target(wanted_);
  }

 private:
  std::string wanted_;
};
const auto* const kEnvironment = testing::AddGlobalTestEnvironment(new TargetOfTheEnvironment);

TEST(DispatchTarget, IsTheOneAskedForAndCanBeChanged) {
  const auto all = dispatch_targets();
  ASSERT_FALSE(all.empty());
  const std::string before = wanted_target();
  EXPECT_EQ(dispatch_target(), before == "portable" ? all.back() : before);
  for (const auto& name : all) {
    use_dispatch_target(name);
    EXPECT_EQ(dispatch_target(), name);
  }
  use_dispatch_target("portable");
  EXPECT_EQ(dispatch_target(), all.back());
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
