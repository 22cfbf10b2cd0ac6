// multihead classify, on small classifiers whose labels transformers wrote down.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "multihead/base/file.h"
#include "tests/cli/small_folder.h"
#include "tests/support/goldens.h"

namespace mh {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::SizeIs;

std::string classify(const std::string& name) {
  return "classify '" + (kGoldens / "labels" / name).string() + "' ";
}

TEST(ClassifyVerb, SaysTheLabelsOfTransformers) {
  const json golden = json::parse(read_file(kGoldens / "labels" / "bert_pairs.texts.json"));
  const std::vector<std::string> names = {"entailment", "neutral", "contradiction"};
  const ScratchFolder scratch;
  std::string firsts, seconds;
  for (const auto& row : golden) {
    firsts += row["text"].get<std::string>() + "\n";
    seconds += row["pair"].get<std::string>() + "\n";
  }
  const std::string pairs = "--input-pair '" + scratch.write("seconds", seconds) + "' ";
  const auto lines = lines_of(run_tool(classify("bert_pairs") + pairs + "--json", firsts).out);
  ASSERT_THAT(lines, SizeIs(golden.size()));
  for (size_t i = 0; i < lines.size(); ++i) {
    const json line = json::parse(lines[i]);
    EXPECT_EQ(line["text"], golden[i]["text"]);
    EXPECT_EQ(line["pair"], golden[i]["pair"]);
    ASSERT_EQ(line["labels"].size(), names.size());
    double before = 1;
    for (const json& label : line["labels"]) {
      const auto number = std::find(names.begin(), names.end(), label["label"]) - names.begin();
      EXPECT_NEAR(label["score"].get<double>(),
                  golden[i]["of_pair"][static_cast<size_t>(number)].get<double>(), 2e-6);
      EXPECT_LE(label["score"].get<double>(), before);
      before = label["score"];
    }
  }
}

TEST(ClassifyVerb, ALineForEachTextOrToken) {
  const ToolResult texts = run_tool(classify("roberta_texts") + "--text 'two dogs run.' --text a --top 2");
  const std::vector<std::string> lines = lines_of(texts.out);
  ASSERT_THAT(lines, SizeIs(2)) << texts.err;
  const json golden = json::parse(read_file(kGoldens / "labels" / "roberta_texts.texts.json"));
  std::vector<double> scores = golden[0]["of_text"];  // of texts that begin alike
  EXPECT_EQ(golden[0]["text"], "two dogs run.");
  std::sort(scores.rbegin(), scores.rend());
  EXPECT_THAT(lines[0], MatchesRegex("0\\.[0-9]+ [a-z]+  0\\.[0-9]+ [a-z]+"));
  EXPECT_NEAR(std::stod(lines[0]), scores[0], 2e-6);
  const ToolResult tokens = run_tool(classify("bert_words") + "--text 'the cat sees a house!' --text a");
  const json words = json::parse(read_file(kGoldens / "labels" / "bert_words.texts.json"));
  const std::vector<std::string> found = lines_of(tokens.out);
  ASSERT_THAT(found, SizeIs(words.size() + 3)) << tokens.out;
  EXPECT_NEAR(std::stod(found[0]), words[0]["score"].get<double>(), 2e-6);
  EXPECT_THAT(found[0], HasSubstr(" " + words[0]["entity"].get<std::string>() + "  the"));
  const json first =
      json::parse(lines_of(run_tool(classify("bert_words") + "--text 'the cat' --json --top 1").out).at(0));
  EXPECT_EQ(first["tokens"][0]["token"], "the");
  EXPECT_EQ(first["tokens"][0]["characters"], json({0, 3}));
  EXPECT_EQ(first["tokens"][0]["labels"].size(), 1u);
}

TEST(ClassifyVerb, ComparesLabelsWithAndWithoutHeads) {
  const std::string flags = classify("bert_pairs") + "--text 'two dogs run.' --top 2 ";
  const ToolResult found = run_tool(flags + "--mute 'encoder.*' --compare");
  EXPECT_EQ(found.status, 0) << found.err;
  EXPECT_THAT(found.out, HasSubstr("text 1: two dogs run."));
  EXPECT_THAT(found.out, HasSubstr("the best label of "));
  for (const std::string& line : lines_of(found.out)) EXPECT_LE(line.size(), 80u) << line;
  EXPECT_NE(run_tool(flags + "--mute 'encoder.*'").out, run_tool(flags).out);
}

TEST(ClassifyVerb, OtherVerbsShowAnEncoderDecoderThatClassifies) {
  const std::string bart = "'" + (kGoldens / "labels" / "bart_pairs").string() + "' ";
  const json info = json::parse(run_tool("info --json " + bart).out);
  EXPECT_EQ(info["labels"]["names"], json({"contradiction", "neutral", "entailment"}));
  EXPECT_FALSE(info.contains("search"));
  EXPECT_THAT(run_tool("info " + bart).out, HasSubstr("3 of texts by softmax: contradiction, neutral"));
  const ToolResult cross = run_tool("heads " + bart + "--text 'two dogs' --head decoder.1.cross_attention.0");
  EXPECT_THAT(cross.out, HasSubstr("each target token to come attends to source tokens")) << cross.err;
  const ScratchFolder scratch;
  const std::string lines = "'" + scratch.write("lines", "two dogs run\nthe cat sees a house\n") + "'";
  const ToolResult view =
      run_tool("view " + bart + "'two dogs run' --corpus " + lines + " -o '" + (scratch / "page.html") + "'");
  EXPECT_EQ(view.status, 0) << view.err;
}

TEST(ClassifyVerb, RefusesWhatItCannotDo) {
  expect_error(run_tool(classify("bert_words") + "--text a --text-pair b"), 2, "leave the second texts out");
  expect_error(run_tool("classify demo --text a"), 2, "demo holds a marian model without a layer of labels");
  expect_error(run_tool(classify("bert_pairs") + "--text a --top 0"), 2, "--top: expected");
  expect_error(run_tool("translate '" + (kGoldens / "labels" / "bert_pairs").string() + "'", "a\n"), 2,
               "which does not translate");
  const std::string decoder = "'" + (kGoldens / "labels" / "llama_pairs").string() + "' ";
  const std::string bart = "'" + (kGoldens / "labels" / "bart_pairs").string() + "' ";
  expect_error(run_tool("translate " + bart, "a\n"), 2,
               "a bart model, which predicts no next token but gives labels (multihead classify)");
  for (const char* verb : {"generate ", "generate --chat ", "score "}) {
    expect_error(run_tool(verb + decoder, "a\n"), 2,
                 "a llama model, which predicts no next token but gives labels (multihead classify)");
  }
  expect_error(run_tool(classify("gpt2_words") + "--text a --text-pair b"), 2, "leave the second texts out");
}

}  // namespace
}  // namespace mh
