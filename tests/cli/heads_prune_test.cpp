// multihead heads prune, on small models of several families.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "multihead/base/terminal_text.h"
#include "tests/cli/small_folder.h"
#include "tests/support/places.h"

namespace mh {
namespace {

using testing::HasSubstr;
using testing::Not;

class HeadsPrune : public SmallFolder {
 protected:
  ToolResult prune(const std::string& arguments) const {
    return run_tool("heads prune '" + folder + "' --out '" + scratch / "pruned" + "' " + arguments);
  }
};

TEST_F(HeadsPrune, WritesAFolderThatIsTheMutedModel) {
  const ToolResult result = prune("--heads 'encoder.0.*' --heads decoder.1.cross_attention.2");
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.out, testing::ContainsRegex("\nheads +18 +15 +-16.7 %\n"));
  for (const char* part :
       {"heads of keys and values", "bytes of weight files", "ms for ",
        "encoder.0.self_attention: 1 of 3 heads stay\n  gone    1, 2\n  silent  0\n",
        "decoder.1.cross_attention: 2 of 3 heads stay\n  gone    2\n", "with these heads muted\n"})
    EXPECT_THAT(result.out, HasSubstr(part));
  EXPECT_THAT(result.err, HasSubstr("Transformers cannot open the folder, multihead does"));
  const std::vector<std::string> lines = lines_of(result.out);
  for (size_t i = 1; i < lines.size(); ++i) EXPECT_LE(display_width(lines[i]), 80) << lines[i];
  // The same translations, from a smaller folder.
  const std::string text = "the small dog sees a cat\na cat runs\n";
  const ToolResult muted = run_tool(
      "translate '" + folder + "' --mute 'encoder.0.self_attention.*' --mute decoder.1.cross_attention.2",
      text);
  const ToolResult pruned = run_tool("translate '" + scratch / "pruned" + "'", text);
  ASSERT_EQ(muted.status, 0) << muted.err;
  EXPECT_EQ(pruned.out, muted.out);
  EXPECT_LT(std::filesystem::file_size(scratch / "pruned/model.safetensors"),
            std::filesystem::file_size(folder + "/model.safetensors"));
}

TEST_F(HeadsPrune, TakesTheHeadsOfAnotherReport) {
  const ToolResult first = prune("--heads decoder.1.cross_attention.2 --rounds 1 --seed 3 --json");
  ASSERT_EQ(first.status, 0) << first.err;
  const auto report = nlohmann::json::parse(first.out);
  EXPECT_EQ(report["options"],
            nlohmann::json::parse(
                R"({"heads":["decoder.1.cross_attention.2"],"dtype":null,"seed":3,"rounds":1,
                                       "source_language":null,"target_language":null})"));
  std::filesystem::remove_all(scratch / "pruned");
  const std::string file = scratch.write("report.json", first.out);
  const auto again = nlohmann::json::parse(prune("--json --options '" + file + "'").out);
  EXPECT_EQ(again["options"], report["options"]);
  EXPECT_EQ(again["attentions"], report["attentions"]);
  EXPECT_EQ(again["difference"], report["difference"]);
  std::filesystem::remove_all(scratch / "pruned");
  const std::string ranked = scratch.write("ranked", "encoder.1.self_attention.2\n");
  const auto other =
      nlohmann::json::parse(prune("--json --heads-from '" + ranked + "' --options '" + file + "'").out);
  EXPECT_EQ(other["options"]["heads"], nlohmann::json({"encoder.1.self_attention.2"}));
}

TEST_F(HeadsPrune, TakesARankedTable) {
  const std::string table =
      scratch.write("ranked",
                    "7 sentences, targets as given\n\nrank  head                         importance\n"
                    "  37  encoder.1.self_attention.2    0.0010 ±0.0002 ████\n"
                    "decoder.0.self_attention.0 0.0002\n");
  const ToolResult result = prune("--heads-from '" + table + "' --json --rounds 1 --dtype bfloat16");
  ASSERT_EQ(result.status, 0) << result.err;
  const auto json = nlohmann::json::parse(result.out);
  EXPECT_EQ(json["schema"], 1);
  EXPECT_EQ(json["format"], "multihead_heads");
  EXPECT_EQ(json["dtype"], "bfloat16");
  EXPECT_EQ(json["heads"]["before"], 18);
  EXPECT_EQ(json["heads"]["after"], 16);
  EXPECT_EQ(json["silent"], 0);
  EXPECT_EQ(json["attentions"][1]["removed"], nlohmann::json({2}));
  EXPECT_LT(json["parameters"]["after"], json["parameters"]["before"]);
  EXPECT_LT(json["weight_bytes"]["after"], json["weight_bytes"]["before"]);
  EXPECT_GT(json["seconds"]["after"], 0);
  EXPECT_LT(json["difference_from_muted"]["logits"].get<double>(),
            1e-5 * json["difference_from_muted"]["logits_magnitude"].get<double>());
  EXPECT_GT(json["difference"]["logits"], json["difference_from_muted"]["logits"]);
}

TEST_F(HeadsPrune, BertKeepsItsFormat) {
  const std::string bert = goldens_folder() + "/bert/encoder";
  const ToolResult result = run_tool("heads prune '" + bert + "' --out '" + scratch / "pruned" +
                                     "' --heads encoder.0.self_attention.1");
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("Transformers 4 opens the folder by its pruned_heads"));
  EXPECT_EQ(nlohmann::json::parse(scratch.read("pruned/config.json"))["pruned_heads"],
            nlohmann::json({{"0", {1}}}));
  EXPECT_EQ(run_tool("info '" + scratch / "pruned" + "'").status, 0);
}

TEST_F(HeadsPrune, RefusesInOneLine) {
  const auto refused = [&](const std::string& arguments, const char* why, int status = 2) {
    const ToolResult result = prune(arguments);
    EXPECT_EQ(result.status, status) << arguments;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    EXPECT_THAT(result.err, HasSubstr(why));
    EXPECT_FALSE(std::filesystem::exists(scratch / "pruned"));
  };
  refused("", "name heads that are to go: --heads");
  refused("--heads encoder.9.self_attention.0", "encoder.9.self_attention");
  refused("--heads 'encoder.9.*'", "encoder.9");
  refused("--heads nonsense", "nonsense");
  refused("--heads-from '" + scratch.write("empty", "a table\nwithout heads\n") + "'", "names no head");
  refused("--heads-from '" + scratch.write("bad", "encoder.0.self_attention.x 1\n") + "'",
          "encoder.0.self_attention.x");
  refused("--heads-from /no/such/file", "/no/such/file", 1);  // as of every file that cannot be read
  std::filesystem::create_directory(scratch / "there");
  const ToolResult there = run_tool("heads prune '" + folder + "' --out '" + scratch / "there" +
                                    "' --heads encoder.0.self_attention.0");
  EXPECT_EQ(there.status, 2);
  EXPECT_THAT(there.err, HasSubstr("exists; name a new folder"));
}

}  // namespace
}  // namespace mh
