// multihead fill, on the small BERT and RoBERTa whose words transformers wrote down.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "multihead/base/file.h"
#include "tests/cli/small_folder.h"
#include "tests/support/goldens.h"

namespace mh {
namespace {

using nlohmann::json;
using testing::SizeIs;
using testing::StartsWith;

std::string fill(const std::string& name) {
  return "fill '" + (kGoldens / "fill" / name).string() + "' ";
}

TEST(FillVerb, SaysTheWordsOfTransformers) {
  const json golden = json::parse(read_file(kGoldens / "fill" / "expected.json"));
  for (const auto& [name, expected] : golden.items()) {
    std::string texts;
    for (const auto& one : expected) texts += one["text"].get<std::string>() + "\n";
    const auto lines = lines_of(run_tool(fill(name) + "--json --words 7", texts).out);
    ASSERT_EQ(lines.size(), expected.size());
    for (size_t i = 0; i < lines.size(); ++i) {
      const json line = json::parse(lines[i]);
      EXPECT_EQ(line["text"], expected[i]["text"]);
      ASSERT_EQ(line["masks"].size(), expected[i]["masks"].size());
      for (size_t m = 0; m < line["masks"].size(); ++m) {
        const auto &found = line["masks"][m], &wanted = expected[i]["masks"][m];
        ASSERT_EQ(found.size(), 7u);
        for (size_t k = 0; k < found.size(); ++k) {
          EXPECT_EQ(found[k]["id"], wanted[k]["token"]);
          EXPECT_EQ(found[k]["word"], wanted[k]["word"]);
          EXPECT_NEAR(found[k]["probability"].get<double>(), wanted[k]["score"].get<double>(), 1e-5);
        }
      }
    }
  }
}

TEST(FillVerb, ALineForEachMask) {
  const ToolResult result =
      run_tool(fill("bert") + "--text 'The [MASK] dogs [MASK].' --text '[MASK]' --words 2");
  EXPECT_EQ(result.status, 0) << result.err;
  const auto lines = lines_of(result.out);
  ASSERT_THAT(lines, SizeIs(3));
  for (const std::string& line : lines) EXPECT_THAT(line, StartsWith("0."));
  EXPECT_NE(run_tool(fill("bert") + "--text '[MASK]' --mute encoder.1.self_attention.0").out,
            run_tool(fill("bert") + "--text '[MASK]'").out);
}

TEST(FillVerb, BadInputIsOneLineAndAStatus) {
  expect_error(run_tool(fill("bert") + "--text 'The sky.'"), 1, "text 1 has no mask; write [MASK]");
  expect_error(run_tool(fill("bert"), "[MASK]\n\n"), 1, "standard input line 2 has no mask");
  expect_error(run_tool(fill("roberta") + "--text 'The [MASK].'"), 1, "write <mask>");
  expect_error(run_tool(fill("bert") + "--text '[MASK]' --words 257"), 2, "--words: expected");
  expect_error(run_tool(fill("bert") + "--text '[MASK]' --words 250"), 2, "--words");
  expect_error(run_tool(fill("bert") + "-i x --text y"), 2, "--text");
  expect_error(run_tool(fill("bert") + "--text '[MASK]' --mute encoder.9.self_attention.0"), 2, "encoder.9");
  expect_error(run_tool("fill '" + (kGoldens / "generate/gpt2").string() + "' --text a"), 2,
               "predicts no masked words");
  expect_error(run_tool("fill '" + (kGoldens / "bert/encoder").string() + "' --text a"), 2,
               "without a head for masked words");
}

}  // namespace
}  // namespace mh
