// Patterns of heads, in every verb that takes names of heads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/cli/small_folder.h"

namespace mh {
namespace {

using testing::HasSubstr;

/// A verb with its flags, the attention whose heads are muted, and how many it has.
struct MutedVerb {
  std::string command, input, attention;
  int heads;
};

class MutePatterns : public SmallFolder {
 protected:
  static std::string golden(const std::string& name) {
    return "'" + std::string(MULTIHEAD_TEST_DATA) + "/" + name + "' ";
  }
  std::vector<MutedVerb> verbs() const {
    const std::string lines = "'" + scratch.write("lines", "a cat runs\nthe dog\n") + "' ",
                      translator = "'" + folder + "' ";
    return {
        {"translate " + translator + "--max-length 7 --n-best 2 ", "a cat\nthe dog\n",
         "decoder.1.cross_attention", 3},
        {"score " + translator + "--source " + lines + "--target " + lines, "", "encoder.0.self_attention",
         3},
        {"heads " + translator + "--json -i " + lines, "", "encoder.0.self_attention", 3},
        {"score " + golden("generate/gpt2"), "two dogs run\n", "decoder.1.self_attention", 3},
        {"generate " + golden("generate/gpt2") + "--greedy --max-new-tokens 11 --json --prompt two ", "",
         "decoder.0.self_attention", 3},
        {"fill " + golden("fill/bert") + "--text 'The [MASK] dogs.' ", "", "encoder.1.self_attention", 5},
        {"embed " + golden("sentences/dense") + "--quiet ", "the cat\n", "encoder.1.self_attention", 2},
    };
  }
};

TEST_F(MutePatterns, MuteAWholeLayerInEveryVerb) {
  for (const MutedVerb& verb : verbs()) {
    SCOPED_TRACE(verb.command);
    std::string one_by_one;
    for (int head = 0; head < verb.heads; ++head)
      one_by_one += "--mute " + verb.attention + "." + std::to_string(head) + " ";
    const ToolResult whole = run_tool(verb.command, verb.input),
                     muted = run_tool(verb.command + "--mute '" + verb.attention + ".*'", verb.input);
    ASSERT_EQ(whole.status, 0) << whole.err;
    ASSERT_EQ(muted.status, 0) << muted.err;
    EXPECT_NE(muted.out, whole.out);
    EXPECT_EQ(muted.out, run_tool(verb.command + one_by_one, verb.input).out);
  }
}

TEST_F(MutePatterns, OneThatFitsNoHeadIsAnErrorThatListsWhatExists) {
  for (const MutedVerb& verb : verbs()) {
    SCOPED_TRACE(verb.command);
    expect_error(run_tool(verb.command + "--mute '*.sidelong_attention.*'", verb.input), 2,
                 "this model has no head '*.sidelong_attention.*'; it has ");
    const ToolResult wrong = run_tool(verb.command + "--mute '*.9'", verb.input);
    EXPECT_EQ(wrong.status, 2);
    EXPECT_THAT(wrong.err, HasSubstr(verb.attention.substr(0, 8)));
    EXPECT_THAT(wrong.err, HasSubstr("with heads 0 to " + std::to_string(verb.heads - 1)));
    expect_error(run_tool(verb.command + "--mute self_attention", verb.input), 2,
                 "head 'self_attention': expected an attention and a head's number");
  }
}

TEST_F(MutePatterns, DrawEachHeadThatFitsOnce) {
  const ToolResult found = run_tool("heads '" + folder +
                                    "' --text 'a cat' --json --head '*.cross_attention.*' "
                                    "--head decoder.1.cross_attention.0 --head 'encoder.*.2'");
  ASSERT_EQ(found.status, 0) << found.err;
  const auto weights = nlohmann::json::parse(found.out)["text"]["weights"];
  EXPECT_EQ(weights.size(), 2u * 3 + 2);
  EXPECT_TRUE(weights.contains("decoder.0.cross_attention.2"));
  EXPECT_TRUE(weights.contains("encoder.1.self_attention.2"));
  expect_error(run_tool("heads '" + folder + "' --text 'a cat' --head 'encoder.*.3'"), 2,
               "this model has no head 'encoder.*.3'; it has encoder.0.self_attention to "
               "encoder.1.self_attention with heads 0 to 2 each");
}

TEST_F(MutePatterns, RemoveTheHeadsThatFit) {
  const std::string out = scratch / "pruned";
  const ToolResult found =
      run_tool("convert '" + folder + "' --out '" + out + "' --remove 'encoder.*.1' --json");
  ASSERT_EQ(found.status, 0) << found.err;
  EXPECT_EQ(load_model_folder(out).translator().config().encoder_heads, 2);
  expect_error(
      run_tool("convert '" + folder + "' --out '" + out + "2' --remove 'encoder.0.self_attention.*'"), 2,
      "encoder.0.self_attention: ");
}

}  // namespace
}  // namespace mh
