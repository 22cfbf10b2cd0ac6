// multihead study: the list, one study of algebra alone, what it writes, wrong names.
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/cli/run_tool.h"
#include "tests/cli/small_folder.h"
#include "tests/support/places.h"

namespace mh {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

TEST(StudyVerb, ListsTheStudies) {
  const ToolResult result = run_tool("study");
  EXPECT_EQ(result.status, 0);
  for (const char* name :
       {"split-or-project", "diversity", "two-matrices-or-one", "unique-heads", "one-product", "table3"}) {
    EXPECT_THAT(result.out, HasSubstr(std::string(name) + "\n    "));
  }
}

TEST(StudyVerb, SaysWhatItMeasuredAndWritesIt) {
  const ScratchFolder folder;
  const ToolResult result =
      run_tool("study one-product --quick --strict --evidence --out " + (folder / "out"));
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.out,
              AllOf(HasSubstr("Why is it called multi-head"), HasSubstr("004.4"),
                    HasSubstr("PASS  algebra  (a)"), HasSubstr("One product is how the heads are computed")));
  EXPECT_THAT(result.err, Not(HasSubstr("--evidence")));
  const auto report = nlohmann::json::parse(folder.read("out/one-product.json"));
  EXPECT_EQ(report["claims"].size(), 7u);
  EXPECT_EQ(report["claims"][0]["verdict"], "PASS");
  EXPECT_EQ(report["claims"][0]["clauses"][0]["verdict"], "PASS");
  EXPECT_EQ(report["claims"][0]["clauses"][0]["kind"], "algebra");
  EXPECT_THAT(folder.read("out/one-product.md"), HasSubstr("# Why is it called multi-head"));
}

TEST(StudyVerb, BeginsWithTheAnswerAndEndsWithWhatTheRunFound) {
  const ScratchFolder folder;
  const ToolResult result = run_tool("study one-product --claim 004.1 004.3 --out " + (folder / "out"));
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_TRUE(
      result.out.starts_with("Why is it called multi-head when one big product computes all heads?\n"));
  EXPECT_THAT(result.out,
              AllOf(HasSubstr("\n    import numpy as np\n"), HasSubstr("  times head 1\n"),
                    HasSubstr("What this run found (multihead study one-product --claim 004.1 004.3)\n\n"
                              "5 clauses: 4 pass, 0 fail, 0 undecided, 1 measured without a prediction.\n"),
                    Not(HasSubstr("PASS"))));
  EXPECT_THAT(result.err, HasSubstr("; --evidence prints them\n"));
}

TEST(StudyVerb, RunsTheClaimsAskedFor) {
  const ScratchFolder folder;
  const ToolResult result =
      run_tool("study two-matrices-or-one --claim 002.3 002.8 --quick --evidence --out " + (folder / "out"));
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.out, AllOf(HasSubstr("002.3"), HasSubstr("002.8"), Not(HasSubstr("002.4"))));
  EXPECT_THAT(folder.read("out/two-matrices-or-one.md"),
              HasSubstr("two-matrices-or-one --claim 002.3 002.8 --quick`"));
}

TEST(StudyVerb, LooksIntoCheckpointsThatTransformersWrote) {
  for (const auto& [checkpoint, tensor] :
       {std::pair{"/marian/relu", "model.encoder.layers.0.self_attn.q_proj.weight"},
        std::pair{"/bert/pretraining", "bert.encoder.layer.0.attention.self.query.weight"}}) {
    const ScratchFolder folder;
    const ToolResult result = run_tool("study two-matrices-or-one --claim 002.6 --quick --evidence --out " +
                                       (folder / "out") + " --checkpoint " + goldens_folder() + checkpoint);
    EXPECT_EQ(result.status, 0) << result.err;
    EXPECT_THAT(result.out, AllOf(HasSubstr("the folder that was given"), HasSubstr(tensor),
                                  HasSubstr("9 clauses: 9 pass")));
    EXPECT_FALSE(std::filesystem::exists(folder / "out/runs")) << "nothing is trained";
  }
}

TEST(StudyVerb, RefusesCheckpointsWithoutEncoder) {
  for (const auto& [checkpoint, type] :
       {std::pair{"/gguf/untied_llama3.gguf", "llama"}, {"/generate/gpt2", "gpt2"}}) {
    const ScratchFolder folder;
    const std::string path = goldens_folder() + std::string(checkpoint);
    const ToolResult result = run_tool("study two-matrices-or-one --claim 002.6 --quick --quiet --out " +
                                       (folder / "out") + " --checkpoint " + path);
    EXPECT_EQ(result.status, 2);
    EXPECT_EQ(result.err,
              "multihead: --checkpoint " + path + " holds a " + type +
                  " model, which has no encoder; give the folder of a translator or of an encoder such "
                  "as BERT\n");
  }
}

TEST(StudyVerb, RefusesClaimsOfRealTextWithoutIt) {
  const ScratchFolder folder;
  const ToolResult result =
      run_tool("study two-matrices-or-one --claim 002.9 --quick --out " + (folder / "out"));
  EXPECT_EQ(result.status, 2);
  EXPECT_THAT(result.err, HasSubstr("claim 002.9 needs real text: add --paper --data DIR"));
}

TEST(StudyVerb, DrawsPagesAgainFromReports) {
  const ScratchFolder folder;
  const std::string out = folder / "out";
  ASSERT_EQ(run_tool("study table3 one-product --redraw --out " + out).status, 1);
  ToolResult result = run_tool("study --redraw --out " + out);
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.err, HasSubstr("has no report of a study, for example one-product.json"));
  ASSERT_EQ(run_tool("study one-product --quick --out " + out).status, 0);
  const std::string page = folder.read("out/one-product.md"), report = folder.read("out/one-product.json");
  std::filesystem::remove(folder / "out/one-product.md");
  result = run_tool("study --redraw --out " + out);
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(folder.read("out/one-product.md"), page);
  EXPECT_EQ(folder.read("out/one-product.json"), report);
  EXPECT_EQ(run_tool("study one-product --redraw --quick --out " + out).status, 2);
}

TEST(StudyVerb, NamesWhatIsWrong) {
  ToolResult result = run_tool("study split");
  EXPECT_EQ(result.status, 2);
  EXPECT_THAT(result.err, HasSubstr("study 'split' is unknown; choose one of split-or-project,"));
  result = run_tool("study --all table3");
  EXPECT_EQ(result.status, 2);
  result = run_tool("study --all --claim 001.4 --quick");
  EXPECT_EQ(result.status, 2);
  EXPECT_THAT(result.err, HasSubstr("--claim needs the name of one study"));
  const ScratchFolder folder;
  result = run_tool("study one-product --quick --claim 001.4 --out " + (folder / "out"));
  EXPECT_EQ(result.status, 2);
  EXPECT_THAT(result.err, HasSubstr("study one-product has no claim '001.4'; choose one of 004.1, 004.2,"));
  EXPECT_FALSE(std::filesystem::exists(folder / "out"));
  result = run_tool("study table3 --paper");
  EXPECT_EQ(result.status, 2);
  EXPECT_THAT(result.err, HasSubstr("name with --data the folder"));
  result = run_tool("study table3 --paper --data /nowhere");
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.err, HasSubstr("/nowhere/train.en.gz"));
}

}  // namespace
}  // namespace mh
