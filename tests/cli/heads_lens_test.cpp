// multihead heads lens, on a small translator with random weights and on small models of other kinds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "multihead/base/file.h"
#include "multihead/base/terminal_text.h"
#include "tests/cli/small_folder.h"
#include "tests/heads/reports/well_formed.h"
#include "tests/support/places.h"

namespace mh {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class HeadsLens : public SmallFolder {
 protected:
  ToolResult lens(const std::string& flags, const std::string& text = "the small dog sees") const {
    return run_tool("heads lens '" + folder + "' '" + text + "' " + flags);
  }
  static ToolResult lens_of(const std::string& golden, const std::string& flags) {
    return run_tool("heads lens '" + goldens_folder() + "/" + golden + "' " + flags);
  }
};

void expect_table(const ToolResult& result, std::initializer_list<const char*> parts) {
  ASSERT_EQ(result.status, 0) << result.err;
  for (const char* part : parts) EXPECT_THAT(result.out, HasSubstr(part));
  for (const std::string& line : lines_of(result.out)) EXPECT_LE(display_width(line), 80) << line;
}

void expect_refused(const ToolResult& result, const char* part) {
  EXPECT_NE(result.status, 0);
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(result.err, StartsWith("multihead: "));
  EXPECT_THAT(result.err, HasSubstr(part));
  EXPECT_EQ(lines_of(result.err).size(), 1u) << result.err;
}

TEST_F(HeadsLens, ShowsOnePositionWithNumbersAndAllWithWords) {
  expect_table(lens("--target-text 'a cat sees' --position 1 --answer dogs --sublayers"),
               {"translation: a cat sees\nAt token 1, ", "rank, log p: of 'dogs' (",
                "\nlayer    word                       p     rank      log p   entropy        KL\nembed ",
                "\n0 self ", "\n0 cross ", "\n1 ", "    0.0000\n\nEach line: "});
  expect_table(lens("--target-text 'a cat sees' --position 1"), {", which the text has here\n"});
  expect_table(lens("--target-text 'the small dog sees a cat and the dogs run'"),
               {"\ntoken    0         1         2 ", "\n         <start>   ", "\n\ntoken    7         8 ",
                "\nThe most probable word by the stream"});
}

TEST_F(HeadsLens, JsonHasEveryPlaceAndPositionAndIsMadeAgain) {
  const std::string question = "--target-text 'a cat sees' --json ";
  const std::string first = lens(question + "--sublayers --words 3").out;
  const auto json = nlohmann::json::parse(first);
  EXPECT_EQ(json["says"], "words");
  ASSERT_EQ(json["values"].size(), 7 * json["positions"].size());
  EXPECT_EQ(json["values"][0]["site"], "decoder.embeddings");
  EXPECT_EQ(json["values"].back()["site"], "decoder.1.output");
  EXPECT_EQ(json["values"].back()["divergence"], 0);
  EXPECT_EQ(json["values"][0]["best"].size(), 3u);
  EXPECT_EQ(
      json["options"],
      nlohmann::json(
          {{"sublayers", true}, {"words", 3}, {"source_language", nullptr}, {"target_language", nullptr}}));
  EXPECT_EQ(lens(question + "--options '" + scratch.write("report.json", first) + "'").out, first);
  const auto muted = nlohmann::json::parse(
      lens(question + "--sublayers --words 3 --mute 'decoder.1.cross_attention.*'").out);
  EXPECT_EQ(muted["values"][0]["best"], json["values"][0]["best"]);
  EXPECT_NE(muted["values"].back(), json["values"].back());
}

TEST_F(HeadsLens, DrawsWordsAndLabelsButNoVectors) {
  const std::string file = scratch / "lens.svg";
  ASSERT_EQ(lens("--target-text 'a cat <b> sees' --svg '" + file + "'").status, 0);
  const std::string svg = read_file(file);
  expect_well_formed(svg);
  EXPECT_THAT(svg, HasSubstr(">0 &lt;start&gt;<"));
  EXPECT_THAT(svg, HasSubstr("<title>decoder.0.output, 1 "));
  expect_refused(lens_of("sentences/dense", "'two dogs run' --svg '" + file + "'"),
                 "this model makes vectors");
  expect_refused(lens("--svg lens.png"), "lens.png");
}

TEST_F(HeadsLens, ShowsLabelsAndCosines) {
  expect_table(lens_of("labels/bert_pairs", "'two dogs run' --text-pair 'a dog sees'"),
               {"\nembed ", "   entropy        KL\n"});
  expect_table(lens_of("labels/bert_words", "'two dogs run' --position 1"),
               {"At token 1, two\nlayer  ", "         O ", "   entropy        KL\n"});
  expect_table(lens_of("labels/bert_words", "'two dogs run'"),
               {"token    0  ", "\nThe most probable label by the stream"});
  expect_table(lens_of("labels/bert_words", "'two dogs run' --answer O"),
               {"\n\nrank of 'O' (O)\ntoken    0  "});
  expect_table(lens_of("labels/bert_pairs", "'two dogs run' --answer neutral"),
               {"rank, log p: of 'neutral' (neutral)\nlayer    label  "});
  expect_table(lens_of("sentences/dense", "'two dogs run' --second 'the cat'"),
               {"layer           own    second\nembed ", "\nown: cosine of the vector"});
  expect_table(lens_of("sentences/dense", "'two dogs run'"), {"layer           own\nembed "});
}

TEST_F(HeadsLens, HostileTextStaysInItsLine) {
  expect_table(
      lens("--target-text 'a \x1b[31m \u202e cat' --answer 'dogs\x1b[0m' --position 1", "the \x1b[31m dog\a"),
      {"\\u001b"});
}

TEST_F(HeadsLens, RefusesWhatCannotBeInOneLine) {
  expect_refused(lens("--position 99 --target-text 'a cat'"), "there is no token 99");
  expect_refused(lens("--second 'a cat'"), "leave it out");
  expect_refused(lens("--mute decoder.7.self_attention.0"), "decoder.7.self_attention");
  expect_refused(lens("", " "), "the text has no words");
  expect_refused(lens("--words 0"), "--words");
  expect_refused(lens_of("sentences/dense", "'two dogs run' --answer cat"), "this one makes vectors");
  expect_refused(lens_of("labels/bert_pairs", "'two dogs run' --position 1"), "labels to whole texts");
  expect_refused(run_tool("heads lens '" + folder + "'"), "--text is required");
}

}  // namespace
}  // namespace mh
