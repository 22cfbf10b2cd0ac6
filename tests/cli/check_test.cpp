// multihead check.
#include <gmock/gmock.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "multihead/base/file.h"
#include "tests/cli/run_tool.h"
#include "tests/cli/small_folder.h"
#include "tests/support/places.h"

namespace mh {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

std::string golden_folder(const std::string& model) {
  return (fs::path(goldens_folder()) / model).string();
}
std::string golden_check(const std::string& model) {
  return (fs::path(goldens_folder()) / "check" / (model + ".safetensors")).string();
}

TEST(CheckTool, SaysThatAModelIsRight) {
  const ScratchFolder scratch;
  const auto result = run_tool("check " + golden_folder("llama/tied_grouped") + " --answer " +
                               golden_check("llama_tied_grouped") + " --json " + scratch / "report.json");
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("right: all "));
  EXPECT_THAT(result.out, HasSubstr("decoder.self_attention.scores"));
  EXPECT_THAT(result.out, HasSubstr("greedy text: 4 texts with the same tokens"));
  for (const std::string& line : lines_of(result.out)) EXPECT_LE(line.size(), 80u) << line;
  EXPECT_EQ(nlohmann::json::parse(read_file(scratch / "report.json"))["right"], true);
}

TEST(CheckTool, SaysWhereAModelDiffersFirst) {
  const auto result = run_tool("check " + golden_folder("llama/tied_grouped") + " --answer " +
                               golden_check("llama_tied_grouped") + " --tolerance 1e-8");
  EXPECT_EQ(result.status, 1);
  EXPECT_EQ(result.err, "");
  EXPECT_THAT(result.out, HasSubstr("differs, first at decoder.0.self_attention.input ("));
}

TEST(CheckTool, WritesWhatItAsks) {
  const ScratchFolder scratch;
  const auto result =
      run_tool("check " + golden_folder("gpt2/tied") + " --request " + scratch / "request.json");
  EXPECT_EQ(result.status, 0) << result.err;
  const auto request = nlohmann::json::parse(read_file(scratch / "request.json"));
  EXPECT_EQ(request["modules"]["stacks"][0]["layers"], "h");
}

TEST(CheckTool, SaysWhatCannotBeRun) {
  const std::string model = golden_folder("gpt2/tied");
  expect_error(run_tool("check " + model + " --python /nowhere/python"), 1,
               "cannot run /nowhere/python: No such file");
  expect_error(run_tool("check " + model + " --python /bin/false"), 1, "/bin/false ended with status 1");
  expect_error(run_tool("check demo"), 1, "transformers opens folders, and demo is none");
  expect_error(run_tool("check " + model + " --tolerance 0"), 2, "--tolerance");
}

TEST(CheckTool, SaysWhatAPythonLacks) {
  const ScratchFolder scratch;
  const std::string python = scratch / "python";
  write_file_atomically(python, "#!/bin/sh\nexec python3 -I -S \"$@\"\n");  // without packages
  fs::permissions(python, fs::perms::owner_all);
  expect_error(run_tool("check " + golden_folder("gpt2/tied") + " --python " + python), 1,
               "install it with: ");
}

// These run only when MULTIHEAD_PYTHON names a Python with torch, transformers and gguf (`make oracles`).
TEST(CheckWithoutGgufOracle, SaysWhatIsMissing) {
  const char* const python = std::getenv("MULTIHEAD_PYTHON");
  if (python == nullptr) GTEST_SKIP() << "set MULTIHEAD_PYTHON to a Python with torch and transformers";
  const ScratchFolder scratch;
  write_file_atomically(scratch / "gguf.py", "raise ImportError('no gguf', name='gguf')\n");
  const std::string without = scratch / "python";
  write_file_atomically(without,
                        "#!/bin/sh\nPYTHONPATH=" + scratch.path().string() + " exec " + python + " \"$@\"\n");
  fs::permissions(without, fs::perms::owner_all);
  const auto result = run_tool("check " + golden_folder("gguf/untied_llama3.gguf") + " --python " + without);
  expect_error(result, 1, "has no gguf; install it with: ");
  EXPECT_THAT(result.err, HasSubstr("-m pip install gguf\n"));
}

class CheckOracle : public testing::TestWithParam<const char*> {};

TEST_P(CheckOracle, IsRight) {
  const char* const python = std::getenv("MULTIHEAD_PYTHON");
  if (python == nullptr) GTEST_SKIP() << "set MULTIHEAD_PYTHON to a Python with torch, transformers and gguf";
  const auto result = run_tool("check " + golden_folder(GetParam()) + " --python " + python);
  EXPECT_EQ(result.status, 0) << result.out << result.err;
  EXPECT_THAT(result.out, HasSubstr("right: all "));
  EXPECT_THAT(result.err, testing::Not(HasSubstr("were not compared")));
}

INSTANTIATE_TEST_SUITE_P(
    Families, CheckOracle,
    testing::Values("bart/plain", "bart/untied_f16", "bart/text", "mbart/plain", "m2m_100/plain",
                    "m2m_100/odd_bf16", "t5/plain", "t5/flan_bf16", "t5/buckets", "mt5/plain", "umt5/plain",
                    "bert/masked", "bert/pretraining", "distilbert/masked", "electra/masked",
                    "labels/electra_replaced", "labels/electra_texts", "gemma2/capped", "gemma3_text/plain",
                    "gpt2/tied", "gpt_neo/windows", "gpt_neox/parallel", "gpt_neox/sequential_bf16",
                    "llama/tied_grouped", "marian/gelu_f16", "mistral/window", "modernbert/masked",
                    "nomic_bert/masked", "mpnet/masked", "olmo2/plain", "opt/before", "opt/after_bf16",
                    "phi/plain", "phi3/grouped", "qwen2/tied", "qwen3/tied", "roberta/masked",
                    "smollm3/some_turn", "gguf/untied_llama3.gguf", "gguf/tied_quantised.gguf",
                    "gguf_sentencepiece/llama.gguf", "gguf_architectures/gemma2.gguf",
                    "gguf_architectures/gemma3.gguf", "gguf_architectures/gptneox.gguf",
                    "gguf_architectures/olmo2.gguf", "gguf_architectures/phi3.gguf",
                    "gguf_architectures/phi3_long.gguf", "gguf_t5/t5_plain.gguf", "gguf_t5/t5_flan_bf16.gguf",
                    "gguf_architectures/qwen2.gguf", "gguf_architectures/qwen3.gguf"),
    [](const auto& tested) {
      std::string name = tested.param;
      std::replace_if(
          name.begin(), name.end(), [](char c) { return c == '/' || c == '.'; }, '_');
      return name;
    });

}  // namespace
}  // namespace mh
