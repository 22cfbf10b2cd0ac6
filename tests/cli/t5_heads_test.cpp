// The verbs about heads on a small T5, whose scores have biases by distance, whose norms are RMS norms and whose heads have another
// size than d_model / heads.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "multihead/base/file.h"
#include "tests/cli/run_tool.h"
#include "tests/support/places.h"

namespace mh {
namespace {

using nlohmann::json;

class T5Heads : public testing::Test {
 protected:
  json report(const std::string& command) const {
    const ToolResult result = run_tool("heads " + command + " '" + folder + "' --json" + texts);
    EXPECT_EQ(result.status, 0) << command << "\n" << result.err;
    return result.status == 0 ? json::parse(result.out) : json();
  }

  const ScratchFolder scratch;
  const std::string folder = goldens_folder() + "/t5/text";
  const std::string source = scratch.write("source", "the small dog sees a cat\ntwo dogs run in the park\n"),
                    target = scratch.write("target", "the park\nthe cat sees\n"),
                    texts = " -i '" + source + "' --target '" + target + "'";
};

TEST_F(T5Heads, EveryMeasureIsMadeOfAllHeads) {
  for (const char* verb : {"stats", "where --all", "similar", "importance", "importance --by ablation"}) {
    const json found = report(verb);
    EXPECT_NE(found.dump().find("decoder.1.cross_attention"), std::string::npos) << verb;
  }
}

TEST_F(T5Heads, WeightsPicturesAndPatchesAreMade) {
  EXPECT_EQ(run_tool("heads circuits '" + folder + "'").status, 0);
  const ToolResult attribution = run_tool("heads attribution '" + folder + "'" + texts);
  EXPECT_EQ(attribution.status, 0) << attribution.err;
  const ToolResult page =
      run_tool("view '" + folder + "' -i '" + source + "' -o '" + (scratch / "page.html") + "'");
  EXPECT_EQ(page.status, 0) << page.err;
  EXPECT_GT(read_file(scratch / "page.html").size(), 100'000U);
}

// A head that is muted gives the score that the report of ablation says.
TEST_F(T5Heads, AblationIsTheDifferenceThatMutingMakes) {
  const auto sum = [&](const std::string& flags) {
    const ToolResult result =
        run_tool("score '" + folder + "' --source '" + source + "' --target '" + target + "'" + flags);
    EXPECT_EQ(result.status, 0) << result.err;
    double all = 0;
    std::istringstream lines(result.out);
    for (double one = 0; lines >> one;) all += one;
    return all;
  };
  const double muted = sum(" --mute encoder.0.self_attention.4"), whole = sum("");
  EXPECT_GT(std::abs(whole - muted), 1e-3);
  const json found = report("importance --by ablation");
  double said = 0;
  for (const json& head : found["heads"]) {
    if (head["head"] == "encoder.0.self_attention.4") said = head["importance"];
  }
  EXPECT_NEAR(said, (whole - muted) / 2, 1e-3);
}

}  // namespace
}  // namespace mh
