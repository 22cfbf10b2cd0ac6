// multihead convert FILE.gguf: the folder that it writes.
#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "multihead/base/file.h"
#include "tests/cli/small_folder.h"
#include "tests/cli/training.h"
#include "tests/support/places.h"

namespace mh {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

const std::string kGgufFiles = goldens_folder() + "/gguf/";

class ConvertGgufVerb : public testing::Test {
 protected:
  const ScratchFolder scratch;
  const std::string out = scratch / "folder";
};

TEST_F(ConvertGgufVerb, WritesAFolder) {
  const std::string file = kGgufFiles + "untied_llama3.gguf";
  const ToolResult result = run_tool("convert " + file + " --out " + out);
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(result.err, "");
  EXPECT_THAT(result.out, AllOf(HasSubstr(out), HasSubstr(file), HasSubstr("26712 parameters in F32")));
  const json config = json::parse(read_file(out + "/config.json"));
  EXPECT_EQ(config["model_type"], "llama");
  EXPECT_EQ(config["rms_norm_eps"], 1e-6);
  EXPECT_EQ(config["rope_scaling"]["rope_type"], "llama3");
  EXPECT_EQ(config["rope_scaling"]["original_max_position_embeddings"], 64);
  const json tokens = json::parse(read_file(out + "/tokenizer_config.json"));
  EXPECT_EQ(tokens["eos_token"], "<|im_end|>");
  EXPECT_EQ(tokens["chat_template"], "{{ messages }}");
  EXPECT_EQ(json::parse(read_file(out + "/generation_config.json"))["eos_token_id"], 2);
  // Both are opened wherever a folder is.
  const std::string text = "the year 2024<|im_end|>\n";
  const ToolResult ids = run_tool("tokenize --model " + file, text),
                   again = run_tool("tokenize --model " + out, text);
  EXPECT_EQ(ids.status, 0) << ids.err;
  EXPECT_EQ(ids.out, again.out);
  EXPECT_THAT(run_tool("translate " + file, text).err,
              HasSubstr("holds a llama model, which does not translate"));
}

TEST_F(ConvertGgufVerb, RefusesWhatItCannotDo) {
  const std::string file = kGgufFiles + "tied_quantised.gguf";
  expect_error(run_tool("convert " + file + " --to merged --out " + out), 2,
               "rotary positions turn each head's queries and keys");
  expect_error(run_tool("convert " + file + " --seed 3 --out " + out), 2,
               "--seed has no meaning with a model that is written as it is");
  EXPECT_FALSE(std::filesystem::exists(out));
  expect_error(run_tool("convert " + kGgufFiles + "none.gguf --out " + out), 1, "none.gguf");
  expect_error(run_tool("convert " + kGgufFiles + "types.gguf --out " + out), 1,
               "\"llama.embedding_length\" is missing");
  EXPECT_FALSE(std::filesystem::exists(out));
  std::filesystem::create_directory(out);
  expect_error(run_tool("convert " + file + " --out " + out), 2, "exists; name a new folder");
  const ToolResult result = run_tool("convert " + file + " --json --out " + out + "2");
  EXPECT_EQ(json::parse(result.out)["out"], out + "2");
}

// Large enough that a signal finds it at work.
TEST(SlowConvertGguf, StoppedByASignalLeavesNothing) {
  const char* models = std::getenv("MULTIHEAD_MODELS");
  if (models == nullptr) GTEST_SKIP() << "set MULTIHEAD_MODELS to the folder that scripts/models made";
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    const ScratchFolder scratch;
    Process process({"convert", std::string(models) + "/smollm2.gguf", "--out", scratch / "smol2"});
    const auto begun = [&] {
      for (const auto& entry : std::filesystem::directory_iterator(scratch.path())) {
        if (std::filesystem::exists(entry.path() / "generation_config.json")) return true;
      }
      return false;
    };
    wait_for(begun, process);
    process.kill(signal);
    const Outcome outcome = process.wait();
    EXPECT_EQ(outcome.status, 128 + signal);
    EXPECT_EQ(outcome.errors, "multihead: stopped; " + scratch / "smol2" + " was not written\n");
    EXPECT_TRUE(std::filesystem::is_empty(scratch.path()));
  }
}

// Runs only when MULTIHEAD_PYTHON names a Python with torch, transformers and gguf (`make oracles`).
class SlowConvertGgufOracle : public ConvertGgufVerb {
 protected:
  void check(const std::string& file) {
    const char* python = std::getenv("MULTIHEAD_PYTHON");
    if (python == nullptr)
      GTEST_SKIP() << "set MULTIHEAD_PYTHON to a Python with torch, transformers and gguf";
    ASSERT_EQ(run_tool("convert " + file + " --out " + out).status, 0);
    const ToolResult result = run_shell(std::string(python) + " " + source_folder() +
                                        "/tests/oracles/gguf_goldens.py --folder " + out + " " + file);
    EXPECT_EQ(result.status, 0) << result.err;
  }
};

TEST_F(SlowConvertGgufOracle, TransformersOpensTheFolderWithEqualLogits) {
  check(kGgufFiles + "tied_quantised.gguf");
}

TEST_F(SlowConvertGgufOracle, OfATokenizerOfSentencePieceToo) {
  check(kGgufFiles + "../gguf_sentencepiece/llama.gguf");
}

TEST_F(SlowConvertGgufOracle, OfTheRealModelToo) {
  const char* models = std::getenv("MULTIHEAD_MODELS");
  if (models == nullptr) GTEST_SKIP() << "set MULTIHEAD_MODELS to the folder that scripts/models made";
  check(std::string(models) + "/smollm2.gguf");
}

TEST_F(SlowConvertGgufOracle, OfOtherArchitecturesToo) {
  const char* python = std::getenv("MULTIHEAD_PYTHON");
  if (python == nullptr) GTEST_SKIP() << "set MULTIHEAD_PYTHON to a Python with torch and transformers";
  for (const std::string name :
       {"qwen2", "qwen3", "gemma2", "gemma3", "phi3", "phi3_long", "gptneox", "gptneox_serial", "olmo2"}) {
    const std::string file = goldens_folder() + "/gguf_architectures/" + name + ".gguf", folder = out + name;
    const ToolResult converted = run_tool("convert " + file + " --out " + folder);
    if (converted.err.find("expected one that is read") != std::string::npos) continue;
    ASSERT_EQ(converted.status, 0) << converted.err;
    const ToolResult result =
        run_shell(std::string(python) + " " + source_folder() +
                  "/tests/oracles/gguf_architectures_goldens.py --folder " + folder + " " + name);
    EXPECT_EQ(result.status, 0) << name << ": " << result.err;
  }
}

}  // namespace
}  // namespace mh
