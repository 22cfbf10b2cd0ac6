// --precision: which verbs have it, that it reaches the model, and what reports say of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "multihead/base/matrix_view.h"
#include "multihead/kernels/product_kernels.h"
#include "multihead/tasks/embed_text.h"
#include "tests/cli/small_folder.h"
#include "tests/support/places.h"

namespace mh {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

const std::string kDemoLines = "the small dog sees a cat .\ntwo dogs run .\n";

TEST(PrecisionFlag, IsThatOfVerbsThatRunAModelOnText) {
  for (const char* verb : {"translate", "generate", "fill", "classify", "embed", "score", "trace", "view",
                           "heads", "heads stats", "heads relations", "heads alignment", "heads similar",
                           "heads where", "heads importance", "heads attribution", "heads patch"})
    EXPECT_THAT(run_tool(std::string(verb) + " --help-all").out, HasSubstr("--precision same|near|fast"))
        << verb;
  for (const char* verb :
       {"check", "demo", "heads circuits", "heads prune", "info", "ledger", "study", "tokenize", "train"})
    EXPECT_THAT(run_tool(std::string(verb) + " --help-all").out, Not(HasSubstr("--precision"))) << verb;
  EXPECT_THAT(run_tool("convert --help-all").out, HasSubstr("--precision int8|q8_0|q4_0"));  // how it writes
}

TEST(PrecisionFlag, TakesItsThreeNames) {
  expect_error(run_tool("translate demo --precision slow"), 2,
               "--precision: expected same|near|fast, got slow");
  expect_error(run_tool("heads stats demo --precision ''"), 2,
               "--precision: expected same|near|fast, got nothing");
  expect_error(run_tool("check demo --precision near"), 2, "--precision is no flag of multihead check");
  expect_error(run_tool("trace --precision near"), 2,
               "--precision is for a model folder's layer, but a random layer is traced");
}

TEST(PrecisionFlag, TakesAKernelOfThisMachine) {
  int foreign = 0;
  const std::string n_best = "translate demo --n-best 2 --precision ";
  const std::string fast = run_tool(n_best + "fast", kDemoLines).out;
  for (const auto& [name, kernel] : kProductKernelNames) {
    const ToolResult result = run_tool(n_best + "fast:" + name, kDemoLines);
    if (is_here({Precision::kFast, kernel})) {
      EXPECT_EQ(result.status, 0) << name << result.err;
      EXPECT_EQ(result.out, fast) << name << ": integers have the same bits";
      continue;
    }
    ++foreign;
    expect_error(result, 2,
                 "--precision: expected " + precisions_like("fast:") + ", got fast:" + std::string(name));
  }
  EXPECT_GT(foreign, 2) << "no machine has all";
  expect_error(run_tool("embed demo --precision fast:"), 2, "--precision: expected fast|fast:int8-");
  const std::string same = run_tool(n_best + "same", kDemoLines).out;
  EXPECT_EQ(run_tool(n_best + "near:float32", kDemoLines).out, same) << "numbers as they are";
  EXPECT_EQ(run_tool(n_best + "same:float32", kDemoLines).out, same);
  expect_error(run_tool("score '" + goldens_folder() + "/gguf/tied_quantised.gguf' --precision near:float32",
                        "the dog\n"),
               2, "--precision: near:float32 multiplies with none of the model's weights; take near");
}

TEST(PrecisionFlag, SameIsTheDefault) {
  EXPECT_EQ(run_tool("score demo --source /dev/null --target /dev/null --precision same").status, 0);
  const std::string n_best = "translate demo --n-best 2";
  const ToolResult usual = run_tool(n_best, kDemoLines);
  ASSERT_EQ(usual.status, 0) << usual.err;
  EXPECT_EQ(run_tool(n_best + " --precision same", kDemoLines).out, usual.out);
}

// Rounding inputs changes numbers a little, whatever the kind of model and of folder.
TEST(PrecisionFlag, GivesNearlyTheSame) {
  for (const char* precision : {"near", "fast"}) {
    const std::string flag = std::string(" --precision ") + precision;
    EXPECT_EQ(run_tool("translate demo" + flag, kDemoLines).out, run_tool("translate demo", kDemoLines).out)
        << precision;

    const std::string gguf = "score '" + goldens_folder() + "/gguf/tied_quantised.gguf' --per-line";
    const ToolResult same = run_tool(gguf, "the dog\n"), other = run_tool(gguf + flag, "the dog\n");
    ASSERT_EQ(same.status, 0) << same.err;
    ASSERT_EQ(other.status, 0) << other.err;
    EXPECT_NEAR(std::stod(other.out), std::stod(same.out), 0.02 * std::abs(std::stod(same.out))) << precision;
  }
}

Tensor vectors_of(const std::string& command, const std::string& lines) {
  const ToolResult result = run_tool(command, lines);
  EXPECT_EQ(result.status, 0) << result.err;
  const std::vector<std::string> rows = lines_of(result.out);
  Tensor vectors(std::ssize(rows), std::ssize(json::parse(rows.at(0))["vector"]));
  for (int64_t i = 0; i < vectors.rows(); ++i) {
    const auto numbers = json::parse(rows[static_cast<size_t>(i)])["vector"].get<std::vector<float>>();
    std::copy(numbers.begin(), numbers.end(), vectors.view().row(i));
  }
  return vectors;
}

TEST(PrecisionFlag, EmbedsNearlyTheSameWithAnyNumberOfThreads) {
  const std::string lines = kDemoLines + "a cat runs\nthe dog\n";
  for (const char* folder : {"sentences/dense", "sentences/modes", "sentences/plain"}) {
    const std::string embed = "embed '" + goldens_folder() + "/" + folder + "'";
    const Tensor same = vectors_of(embed, lines);
    for (const char* precision : {"near", "fast"}) {
      const std::string command = embed + " --precision " + precision;
      const Tensor found = vectors_of(command, lines);
      ASSERT_EQ(found.size(), same.size());
      if (precision == std::string("fast")) {
        EXPECT_FALSE(std::equal(found.data(), found.data() + found.size(), same.data())) << folder;
      }
      Tensor both(2, same.cols());
      for (int64_t i = 0; i < same.rows(); ++i) {
        std::copy_n(same.view().row(i), same.cols(), both.view().row(0));
        std::copy_n(found.view().row(i), same.cols(), both.view().row(1));
        EXPECT_GT(cosine(both.view(), 0, 1), 0.99) << folder << " " << precision << " line " << i;
      }
      const std::string one = run_tool(command + " --threads 1 --max-batch-tokens 7", lines).out;
      EXPECT_EQ(run_tool(command + " --threads 3", lines).out, one) << folder << " " << precision;
    }
  }
}

TEST(PrecisionFlag, StandsInReports) {
  const ScratchFolder scratch;
  for (const std::string& command :
       {std::string("stats demo"), std::string("similar demo"), std::string("where demo --all"),
        std::string("importance demo"), std::string("demo")}) {
    const auto report = [&](const std::string& flags) {
      const ToolResult result = run_tool("heads " + command + " --json " + flags, kDemoLines);
      EXPECT_EQ(result.status, 0) << command << result.err;
      return json::parse(result.out);
    };
    EXPECT_EQ(report("")["precision"], "same") << command;
    const json near = report("--precision near");
    EXPECT_EQ(near["precision"], "near") << command;
    for (const auto& [name, weights] : kWeightsKindNames) {
      EXPECT_EQ(near["kernels"][name], name_of(kernel_for(Precision::kNear, weights), kProductKernelNames))
          << command;
    }
    EXPECT_EQ(report("")["kernels"], json::parse(R"({"numbers": "float32", "blocks": "float32"})"));
    EXPECT_EQ(report("--precision near:float32")["precision"], "near:float32") << command;
    if (!near.contains("options")) continue;
    const std::string file = " --options '" + scratch.write("report.json", near.dump()) + "'";
    EXPECT_EQ(report(file), near) << command;
    EXPECT_EQ(report(file + " --precision fast")["precision"], "fast") << "what is given counts before";
    const json named = report("--precision near:float32");
    EXPECT_EQ(named["kernels"]["numbers"], "float32") << command;
    EXPECT_EQ(report(" --options '" + scratch.write("named.json", named.dump()) + "'"), named) << command;
  }
  EXPECT_FALSE(json::parse(run_tool("heads circuits demo --json").out).contains("precision"));
  const ToolResult wrong = run_tool(
      "heads stats demo --options '" +
          scratch.write("wrong.json", R"({"schema":1,"verb":"stats","options":{},"precision":"slow"})") + "'",
      kDemoLines);
  expect_error(wrong, 1, "wrong.json: precision: expected same|near|fast, got \"slow\"");
}

}  // namespace
}  // namespace mh
