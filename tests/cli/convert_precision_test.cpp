// multihead convert --precision: smaller weights, and what the tool says of them.
#include <gmock/gmock.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "multihead/base/file.h"
#include "multihead/folders/save_folder.h"
#include "tests/cli/small_folder.h"
#include "tests/folders/gguf_case.h"

namespace mh {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

/// Folders and files with rows of whole blocks, and the small ones of SmallFolder, which have none.
class ConvertPrecision : public SmallFolder {
 protected:
  ConvertPrecision() {
    TranslatorShape shape = make_shape(tokenizer);
    shape.d_model = 96;
    EncoderDecoder made(shape.config());
    made.initialise(5);
    save_model_folder(wide, made, {.tokenizer = &tokenizer});
    write_file_atomically(file, test::with_random_numbers(test::small_gguf(32, 37), 3).bytes());
  }
  void refused(const std::string& flags, const std::string& part, int status = 2) {
    expect_error(run_tool("convert " + flags), status, part);
    EXPECT_FALSE(std::filesystem::exists(never) || std::filesystem::exists(never + ".gguf"));
  }

  const std::string wide = scratch / "wide", file = scratch / "model.gguf", never = scratch / "never";
};

TEST_F(ConvertPrecision, Int8IsAFolderThatOpensAgain) {
  const std::string out = scratch / "int8";
  const ToolResult result = run_tool("convert " + wide + " --precision int8 --out " + out);
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(result.err, "");
  EXPECT_THAT(result.out, AllOf(HasSubstr("matrices as int8"), HasSubstr("weights before: F32 "),
                                HasSubstr("weights after: I8 "), HasSubstr("bytes of weights"),
                                HasSubstr("5 random pairs of sentences (seed 1)"),
                                HasSubstr("The same model with weights of fewer bits")));
  const json info = json::parse(run_tool("info " + out + " --json").out);
  EXPECT_EQ(info["weights"][0]["type"], "I8");
  EXPECT_EQ(info["weights"][1]["type"], "BF16");
  for (const char* precision : {"same", "near", "fast"}) {
    const ToolResult text = run_tool("translate " + out + " --precision " + precision, "a small dog\n");
    EXPECT_EQ(text.status, 0) << text.err;
  }
  expect_error(run_tool("convert " + out + " --precision int8 --out " + never), 2, "are int8 already");
  // Other numbers stay float32 where that is asked for, and it becomes a folder of numbers again.
  ASSERT_EQ(run_tool("convert " + wide + " --precision int8 --dtype float32 --out " + out + "2").status, 0);
  EXPECT_EQ(json::parse(run_tool("info " + out + "2 --json").out)["weights"][1]["type"], "F32");
  ASSERT_EQ(run_tool("convert " + out + "2 --dtype float32 --out " + out + "3").status, 0);
  const std::string lines = "a small dog\nthe cat runs\n";
  EXPECT_EQ(run_tool("translate " + out + "3", lines).out, run_tool("translate " + out + "2", lines).out);
}

TEST_F(ConvertPrecision, BlocksAreAFileThatOpensAgain) {
  for (const std::string type : {"q8_0", "q4_0"}) {
    const std::string out = scratch / type + ".gguf";
    const ToolResult result = run_tool("convert " + file + " --json --precision " + type + " --out " + out);
    ASSERT_EQ(result.status, 0) << result.err;
    EXPECT_EQ(result.err, "");
    const json report = json::parse(result.out);
    EXPECT_EQ(report["conversion"], "matrices as " + type);
    EXPECT_EQ(report["exact"], false);
    EXPECT_LT(report["bytes"]["after"], report["bytes"]["before"]);
    EXPECT_EQ(report["parameters"]["after"], report["parameters"]["before"]);
    EXPECT_EQ(report["weights"]["before"][0]["type"], "F32");
    const json weights = json::parse(run_tool("info " + out + " --json").out)["weights"];
    EXPECT_EQ(report["weights"]["after"], weights);
    EXPECT_THAT(weights.dump(), HasSubstr(type == "q8_0" ? "Q8_0" : "Q4_0"));
    EXPECT_GT(report["difference"]["logits"], 0);
    EXPECT_LT(report["difference"]["logits"],
              (type == "q8_0" ? 0.05 : 0.6) * report["difference"]["logits_magnitude"].get<double>());
    expect_error(run_tool("convert " + out + " --precision " + type + " --out " + never + ".gguf"), 2,
                 "no matrix would be smaller in " + std::string(type == "q8_0" ? "Q8_0" : "Q4_0"));
  }
  // Text is compared where it is given, and a file of blocks becomes a folder of integers, too.
  const std::string lines = scratch.write("lines", "ab abc\n");
  EXPECT_THAT(run_tool("convert " + (scratch / "q8_0.gguf") + " --precision int8 --source " + lines +
                       " --out " + (scratch / "int8"))
                  .out,
              HasSubstr("1 sentence"));
}

TEST_F(ConvertPrecision, RefusesInOneLine) {
  refused(wide + " --precision q4_0 --out " + never + ".gguf", wide + " is a folder; take --precision int8");
  refused(file + " --precision q8_0 --out " + never, "let its name end with .gguf");
  refused(file + " --precision int8 --out " + never + ".gguf", "--precision int8 makes a folder");
  refused(file + " --precision q4_1 --out " + never, "--precision: expected int8|q8_0|q4_0, got q4_1");
  refused(file + " --precision q8_0 --dtype bfloat16 --out " + never + ".gguf", "--dtype has no meaning");
  refused(wide + " --precision int8 --to merged --out " + never, "convert the heads first");
  refused(wide + " --precision int8 --d-key 3 --out " + never, "--d-key has no meaning with --precision");
  refused(folder + " --precision int8 --out " + never, "has no matrix [out, in] of rows");
  refused("/no/such.gguf --precision q8_0 --out " + never + ".gguf", "/no/such.gguf", 1);
  expect_error(run_tool("convert " + file + " --precision q8_0 --out " + file), 2, "exists; name a new file");
  expect_error(run_tool("convert " + wide + " --precision int8 --out " + wide), 2,
               "exists; name a new folder");
}

}  // namespace
}  // namespace mh
