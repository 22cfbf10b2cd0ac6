// Heads that are muted, gated or whose weights a rule replaces, and patterns of heads, in every verb that takes them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "multihead/models/translator_shape.h"
#include "tests/cli/small_folder.h"
#include "tests/support/places.h"

namespace mh {
namespace {

using testing::HasSubstr;

/// A verb with its flags, the attention whose heads are changed, and how many it has.
struct ChangingVerb {
  std::string command, input, attention;
  int heads;
};

class HeadChanges : public SmallFolder {
 protected:
  static std::string golden(const std::string& name) { return "'" + goldens_folder() + "/" + name + "' "; }
  std::vector<ChangingVerb> verbs() const {
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
        {"classify " + golden("labels/bert_pairs") + "--text 'The dogs.' ", "", "encoder.0.self_attention",
         2},
        {"classify " + golden("labels/gpt2_words") + "--text 'The dogs.' --json ", "",
         "decoder.0.self_attention", 3},
        {"embed " + golden("sentences/dense") + "--quiet ", "the cat\n", "encoder.1.self_attention", 2},
    };
  }
};

TEST_F(HeadChanges, MuteAWholeLayerInEveryVerb) {
  for (const ChangingVerb& verb : verbs()) {
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

TEST_F(HeadChanges, GateHeadsInEveryVerb) {
  for (const ChangingVerb& verb : verbs()) {
    SCOPED_TRACE(verb.command);
    const auto with = [&](const std::string& flags) {
      const ToolResult found = run_tool(verb.command + flags, verb.input);
      EXPECT_EQ(found.status, 0) << found.err;
      return found.out;
    };
    const std::string heads = "'" + verb.attention + ".*", whole = with(""),
                      muted = with("--mute " + heads + "'"), doubled = with("--gate " + heads + "=-2e0'");
    EXPECT_EQ(with("--gate " + heads + "=1'"), whole);
    EXPECT_EQ(with("--gate " + heads + "=0'"), muted);
    EXPECT_EQ(with("--gate " + heads + "=1e-60'"), muted);
    EXPECT_NE(doubled, whole);
    EXPECT_NE(doubled, muted);
    // All but one head muted: of several gates the last one counts.
    std::string others;
    for (int head = 1; head < verb.heads; ++head)
      others += "--mute " + verb.attention + "." + std::to_string(head) + " ";
    EXPECT_EQ(with("--gate " + heads + "=0' --gate " + verb.attention + ".0=1"), with(others));
  }
}

TEST_F(HeadChanges, ReplaceWeightsInEveryVerb) {
  for (const ChangingVerb& verb : verbs()) {
    SCOPED_TRACE(verb.command);
    std::vector<std::string> found = {run_tool(verb.command, verb.input).out};
    for (const char* rule : {"uniform", "previous", "first"}) {
      std::string one_by_one;
      for (int head = 0; head < verb.heads; ++head)
        one_by_one += "--replace " + verb.attention + "." + std::to_string(head) + "=" + rule + " ";
      const ToolResult replaced =
          run_tool(verb.command + "--replace '" + verb.attention + ".*=" + rule + "'", verb.input);
      ASSERT_EQ(replaced.status, 0) << replaced.err;
      EXPECT_THAT(found, testing::Not(testing::Contains(replaced.out)));
      EXPECT_EQ(run_tool(verb.command + one_by_one, verb.input).out, replaced.out);
      found.push_back(replaced.out);
    }
  }
}

TEST_F(HeadChanges, ShowTheWeightsOfTheRule) {
  const ToolResult found = run_tool("heads '" + folder +
                                    "' --text 'a cat runs' --json --head decoder.1.self_attention.2 "
                                    "--replace decoder.1.self_attention.2=previous");
  ASSERT_EQ(found.status, 0) << found.err;
  const auto weights = nlohmann::json::parse(found.out)["text"]["weights"]["decoder.1.self_attention.2"];
  ASSERT_GE(weights.size(), 2u);
  for (size_t i = 0; i < weights.size(); ++i) {
    for (size_t j = 0; j < weights[i].size(); ++j) EXPECT_EQ(weights[i][j], j == (i > 0 ? i - 1 : 0) ? 1 : 0);
  }
}

TEST_F(HeadChanges, AreComparedWithAllHeads) {
  const std::string verb = "fill " + golden("fill/bert") + "--text 'The [MASK] dogs.' --compare ";
  for (const char* change : {"--mute 'encoder.*'", "--gate 'encoder.*=0'"}) {
    const ToolResult found = run_tool(verb + change);
    EXPECT_EQ(found.status, 0) << found.err;
    EXPECT_THAT(found.out, HasSubstr("WITH CHANGED HEADS"));
  }
  EXPECT_EQ(run_tool(verb + "--replace 'encoder.*=first'").status, 0);
  expect_error(run_tool(verb), 2,
               "--compare needs heads that are changed; give --mute, --gate, --replace or --steer");
}

TEST_F(HeadChanges, ThatAreMistypedAreExplained) {
  const std::string verb = "score " + golden("generate/gpt2"), head = "decoder.1.self_attention.0";
  const auto expect_refused = [&](const std::string& flags, const std::string& error) {
    expect_error(run_tool(verb + flags, "two dogs run\n"), 2, error);
  };
  expect_refused("--gate " + head,
                 "--gate " + head + ": expected = and a value behind the head, such as " + head + "=0.5");
  expect_refused("--replace " + head, "such as " + head + "=uniform");
  for (const char* number : {"half", "1x", "nan", "inf", "1e39"})
    expect_refused("--gate " + head + "=" + number,
                   "--gate " + head + "=: expected a finite number, got " + std::string(number));
  expect_refused("--gate " + head + "=", "expected a finite number, got nothing");
  const ToolResult huge = run_tool(verb + "--gate '*=1e38'", "two dogs run\n");
  EXPECT_NE(huge.status, 0);
  EXPECT_THAT(huge.err,
              HasSubstr("are not finite numbers; a gate or a number that was put into it may be too large"));
  expect_refused("--replace " + head + "=last",
                 "--replace " + head + "=: expected uniform|previous|first, got last");
  expect_refused("--mute " + head + " --gate " + head + "=0.5",
                 head + " is given to --mute and to --gate; give it to one of them");
  expect_refused("--mute 'decoder.*' --gate " + head + "=0.5",
                 head + " is muted by 'decoder.*' and gated by '" + head + "'; name it in one of them");
  expect_refused("--gate 'decoder.*=0.5' --mute " + head,
                 head + " is muted by '" + head + "' and gated by 'decoder.*'");
  for (const char* flag : {"--gate 'encoder.*.0=2'", "--replace 'encoder.*.0=first'"})
    expect_refused(flag, "this model has no head 'encoder.*.0'; it has decoder.0.self_attention to ");
  expect_refused("--gate self_attention=1",
                 "head 'self_attention': expected an attention and a head's number");
}

TEST_F(HeadChanges, OneThatFitsNoHeadIsAnErrorThatListsWhatExists) {
  for (const ChangingVerb& verb : verbs()) {
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

TEST_F(HeadChanges, DrawEachHeadThatFitsOnce) {
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

TEST_F(HeadChanges, RemoveTheHeadsThatFit) {
  const std::string out = scratch / "pruned";
  const ToolResult found =
      run_tool("convert '" + folder + "' --out '" + out + "' --remove 'encoder.*.1' --json");
  ASSERT_EQ(found.status, 0) << found.err;
  EXPECT_EQ(shape_of(load_model_folder(out).translator().config()).encoder_heads, 2);
  expect_error(
      run_tool("convert '" + folder + "' --out '" + out + "2' --remove 'encoder.0.self_attention.*'"), 2,
      "encoder.0.self_attention: ");
}

}  // namespace
}  // namespace mh
