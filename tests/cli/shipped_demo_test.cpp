// Every verb that takes a model takes `demo`, the translator that comes with the tool, in whatever folder it is called.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/run_tool.h"
#include "tests/cli/small_folder.h"

namespace mh {
namespace {

using testing::HasSubstr;

struct Call {
  const char *arguments, *says;  // in its output, or in its error where it refuses
  int status = 0;
};

TEST(ShippedDemo, IsAModelOfEveryVerb) {
  const ScratchFolder scratch;
  const std::string begin = "cd '" + scratch.path().string() + "' && echo 'the small dog sees a cat .' | ";
  for (const Call& call : {
           Call{"translate demo", "der kleine Hund sieht eine Katze .\n"},
           Call{"tokenize --model demo", "the small dog sees a cat ."},
           Call{"info demo", "630,688"},
           Call{"info demo --json", "model.safetensors"},
           Call{"heads demo --text 'the small dog sees a cat .' --head decoder.1.cross_attention.2", "Katze"},
           Call{"trace demo --text 'the small dog sees a cat .'", "encoder.0.self_attention of demo"},
           Call{"ledger demo", "decoder"},
           Call{"embed demo", "\"vector\""},
           Call{"convert demo --out half --remove encoder.0.self_attention.1", "half"},
           Call{"score demo --source /dev/stdin --target /dev/null", "", 1},
           Call{"generate demo --prompt x", "demo holds a marian model, which translates", 2},
           Call{"fill demo", "demo holds a marian model, which predicts no masked words", 2},
       }) {
    const ToolResult result = run_shell(begin + "\"$MULTIHEAD\" " + call.arguments);
    EXPECT_EQ(result.status, call.status) << call.arguments << "\n" << result.err;
    EXPECT_THAT(call.status == 0 ? result.out : result.err, HasSubstr(call.says)) << call.arguments;
  }
  // What was converted is a folder as any other.
  EXPECT_EQ(run_shell(begin + "\"$MULTIHEAD\" translate half").status, 0);
}

TEST(ShippedDemo, AFolderOfThatNameComesFirst) {
  const ScratchFolder scratch;
  const std::string in_scratch = "cd '" + scratch.path().string() + "' && ";
  ASSERT_EQ(run_shell(in_scratch + "\"$MULTIHEAD\" convert demo --out demo --dtype float32").status, 0);
  const ToolResult result =
      run_shell(in_scratch + "echo 'the small dog sees a cat .' | \"$MULTIHEAD\" translate demo");
  EXPECT_EQ(result.out, "der kleine Hund sieht eine Katze .\n");
  EXPECT_EQ(result.err,
            "multihead: demo is the folder here, not the translator demo that comes with multihead\n");
}

}  // namespace
}  // namespace mh
