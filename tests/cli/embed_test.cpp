// multihead embed, on small models that sentence-transformers wrote.
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "multihead/base/file.h"
#include "multihead/io/lines.h"
#include "multihead/io/npy.h"
#include "multihead/recipes/embed_text.h"
#include "tests/cli/small_folder.h"

namespace mh {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

const std::string kSentences = std::string(MULTIHEAD_TEST_DATA) + "/sentences/",
                  kText8 = kSentences + "sentences.txt";

class EmbedVerb : public testing::Test {
 protected:
  static ToolResult embed(const std::string& flags, const std::string& input = "",
                          const char* name = "dense") {
    return run_tool("embed '" + kSentences + name + "' " + flags, input);
  }
  ScratchFolder scratch;
};

TEST_F(EmbedVerb, AllFormatsHoldTheVectorsOfTheLibrary) {
  const SentenceModel model = load_sentence_model(kSentences + "dense");
  const std::vector<std::string> lines = read_lines(kText8);
  const Tensor expected = embed_text(model, lines);
  const std::vector<float> numbers(expected.data(), expected.data() + expected.size());

  const ToolResult found = embed("-i '" + kText8 + "'");
  ASSERT_EQ(found.status, 0) << found.err;
  EXPECT_THAT(found.err,
              AllOf(HasSubstr("1 of 8 lines cut to the 29 tokens"), HasSubstr("line 6 has 38 tokens")));
  const auto rows = lines_of(found.out);
  ASSERT_EQ(rows.size(), lines.size());
  std::vector<float> read;
  for (size_t i = 0; i < rows.size(); ++i) {
    const json row = json::parse(rows[i]);
    EXPECT_EQ(row["text"], lines[i]);
    ASSERT_EQ(row["vector"].size(), 9u);
    for (const auto& number : row["vector"]) read.push_back(number.get<float>());
  }
  EXPECT_EQ(read, numbers);

  const std::string file = scratch / "out";
  EXPECT_EQ(embed("-i '" + kText8 + "' --format npy --quiet -o '" + file + "'").out, "");
  const NpyArray array = read_npy(scratch.read("out"), "out");
  EXPECT_THAT(array.shape, testing::ElementsAre(8, 9));
  EXPECT_EQ(std::get<std::vector<float>>(array.data), numbers);
  const std::string raw = embed("-i '" + kText8 + "' --format raw --max-batch-tokens 7 --threads 3").out;
  ASSERT_EQ(raw.size(), 4 * numbers.size());
  EXPECT_EQ(std::memcmp(raw.data(), numbers.data(), raw.size()), 0);
  EXPECT_EQ(embed("--format npy", "").out, write_npy(std::array<int64_t, 2>{0, 9}, std::span<const float>()));
  EXPECT_EQ(embed("", "").out, "");
}

TEST_F(EmbedVerb, AnEmptyLineIsItsSpecialTokens) {
  const ToolResult two = embed("", "\n   \n");
  const auto rows = lines_of(two.out);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(json::parse(rows[0])["vector"], json::parse(rows[1])["vector"]);
}

TEST_F(EmbedVerb, SaysHowAlikeTextsAreAndWhichAreNearest) {
  const ToolResult same = embed("--similarity 'two dogs run .' 'two dogs run .'");
  EXPECT_EQ(same.out, "1.000000\n") << same.err;
  EXPECT_LT(std::stod(embed("--similarity 'two dogs run .' 'the cat'").out), 0.9999);
  const ToolResult nearest = embed("--nearest 3 '" + kText8 + "' --quiet", "the cat\nbirds sleep\n");
  ASSERT_EQ(nearest.status, 0) << nearest.err;
  const auto lines = lines_of(nearest.out);
  ASSERT_EQ(lines.size(), 2u * 4);
  EXPECT_EQ(lines[0], "the cat");
  EXPECT_EQ(lines[1], "   1.0000       3  the cat");
  EXPECT_EQ(lines[4], "birds sleep");
  EXPECT_EQ(lines[5], "   1.0000       7  birds sleep");
  EXPECT_EQ(lines_of(embed("--nearest 99 '" + kText8 + "' --quiet", "the cat\n").out).size(), 1u + 8);
  const std::string file = scratch / "out";
  EXPECT_EQ(embed("--quiet -o '" + file + "' --nearest 3 '" + kText8 + "'", "the cat\nbirds sleep\n").out,
            "");
  EXPECT_EQ(scratch.read("out"), nearest.out);
}

TEST_F(EmbedVerb, MutedHeadsAndStrictLines) {
  const std::string plain = embed("--quiet -i '" + kText8 + "'").out;
  EXPECT_NE(embed("--quiet --mute encoder.0.self_attention.1 -i '" + kText8 + "'").out, plain);
  EXPECT_THAT(embed("--quiet -i '" + kText8 + "'").err, IsEmpty());
  expect_error(
      embed("--strict -i '" + kText8 + "'"), 1,
      "line 6 has 38 tokens, but the model reads 29; shorten it, or let it be cut: leave out --strict");
}

TEST_F(EmbedVerb, AFolderWithoutModulesMeansTheMeanAndSaysSo) {
  EXPECT_THAT(
      embed("", "the cat\n", "plain").err,
      HasSubstr("plain has no modules.json of sentence-transformers: a vector is the mean of the states"));
}

TEST_F(EmbedVerb, BadInputIsOneLineAndAStatus) {
  expect_error(embed("--format npz"), 2, "--format: expected jsonl|npy|raw, got npz");
  expect_error(embed("--mute encoder.2.self_attention.0", "a\n"), 2, "encoder.2.self_attention");
  expect_error(embed("--mute encoder.0.self_attention.2", "a\n"), 2, "encoder.0.self_attention");
  expect_error(embed("--nearest x '" + kText8 + "'", "a\n"), 2, "--nearest: expected a number of lines");
  expect_error(embed("--nearest 0 '" + kText8 + "'", "a\n"), 2, "--nearest: expected a number of lines");
  expect_error(embed("--nearest 2 /no/such/file", "a\n"), 1, "/no/such/file");
  expect_error(embed("--nearest 2 '" + scratch.write("none", "") + "'", "a\n"), 1,
               "none is empty; give sentences");
  expect_error(embed("--nearest 2"), 2, "--nearest");
  expect_error(embed("--similarity a"), 2, "--similarity: expected 2 values, got 1");
  expect_error(embed("--similarity a b c"), 2, "--similarity: expected 2 values, got 3");
  expect_error(embed("--nearest 3"), 2, "--nearest: expected 2 values, got 1");
  expect_error(embed("--similarity a \"$(printf '\\377')\""), 2, "--similarity: byte 1 (0xff) is not UTF-8");
  expect_error(embed("--similarity a b --nearest 1 x"), 2, "--nearest");
  expect_error(embed("--similarity a b --format raw"), 2, "--format");
  expect_error(embed("", "a\n\xff\n"), 1, "standard input: line 2: byte 1 (0xff) is not UTF-8");
  expect_error(embed("", "a\n", "nowhere"), 1, "no model folder");
  expect_error(run_tool("embed"), 2, "the model folder is missing; give it as multihead embed DIR");
}

}  // namespace
}  // namespace mh
