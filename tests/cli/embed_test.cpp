// multihead embed, on small models that sentence-transformers wrote.
#include <array>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>

#include "multihead/base/file.h"
#include "multihead/io/lines.h"
#include "multihead/io/npy.h"
#include "multihead/tasks/embed_text.h"
#include "tests/cli/small_folder.h"
#include "tests/support/places.h"

namespace mh {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

const std::string kSentences = goldens_folder() + "/sentences/", kText8 = kSentences + "sentences.txt";

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

TEST_F(EmbedVerb, ObeysTheSimilarityOfTheFolder) {
  const std::string folder = scratch / "dot";
  std::filesystem::copy(kSentences + "dense", folder, std::filesystem::copy_options::recursive);
  json settings = json::parse(read_file(folder + "/config_sentence_transformers.json"));
  settings["similarity_fn_name"] = "dot";
  write_file_atomically(folder + "/config_sentence_transformers.json", settings.dump());
  const Tensor rows = embed_text(load_sentence_model(folder), {"the cat", "two dogs run ."});
  double dot = 0;
  for (int64_t j = 0; j < rows.cols(); ++j)
    dot += static_cast<double>(rows(0, j)) * static_cast<double>(rows(1, j));
  ASSERT_GT(std::abs(dot - cosine(rows.view(), 0, 1)), 1e-3);

  const ToolResult alike = run_tool("embed '" + folder + "' --similarity 'the cat' 'two dogs run .'");
  EXPECT_NEAR(std::stod(alike.out), dot, 2e-6) << alike.err;
  EXPECT_THAT(alike.err, HasSubstr("similarity is the dot product\n"));
  const ToolResult nearest = run_tool("embed '" + folder + "' --nearest 1 '" + kText8 + "'", "the cat\n");
  EXPECT_THAT(nearest.err, HasSubstr("similarity is the dot product"));
  EXPECT_THAT(embed("--nearest 1 '" + kText8 + "'", "the cat\n").err,
              HasSubstr("similarity is the cosine\n"));
  EXPECT_EQ(embed("--nearest 1 '" + kText8 + "' --quiet", "the cat\n").err, "");
  const std::string info = run_tool("info '" + folder + "'").out;
  EXPECT_THAT(info, HasSubstr("similarity    the dot product\n"));
  EXPECT_EQ(json::parse(run_tool("info --json '" + folder + "'").out)["sentences"]["similarity"], "dot");
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

TEST_F(EmbedVerb, NearestOnSavedVectorsIsTheSameWithoutEmbeddingAgain) {
  const std::string file = scratch / "saved.npy", nearest = "--nearest 3 '" + kText8 + "' --quiet ";
  ASSERT_EQ(embed("-i '" + kText8 + "' --format npy --quiet -o '" + file + "'").status, 0);
  const std::string queries = "the cat\nbirds sleep\n";
  const ToolResult found = embed(nearest + "--vectors '" + file + "'", queries);
  EXPECT_EQ(found.status, 0) << found.err;
  EXPECT_EQ(found.out, embed(nearest, queries).out);
  // The vectors are those of the file: in the other order the neighbours have the other numbers.
  NpyArray array = read_npy(scratch.read("saved.npy"), "saved");
  auto& numbers = std::get<std::vector<float>>(array.data);
  std::vector<float> reversed;
  for (size_t row = 8; row-- > 0;)
    reversed.insert(reversed.end(), numbers.begin() + static_cast<std::ptrdiff_t>(9 * row),
                    numbers.begin() + static_cast<std::ptrdiff_t>(9 * (row + 1)));
  scratch.write("reversed.npy", write_npy(array.shape, std::span<const float>(reversed)));
  EXPECT_EQ(
      lines_of(embed(nearest + "--vectors '" + (scratch / "reversed.npy") + "'", "the cat\n").out)[1].substr(
          0, 17),
      "   1.0000       6");  // line 3 of 8
}

TEST_F(EmbedVerb, SavedVectorsThatDoNotFitAreNamed) {
  const auto refused = [&](const std::string& bytes, const std::string& part) {
    expect_error(
        embed("--nearest 2 '" + kText8 + "' --vectors '" + scratch.write("v.npy", bytes) + "'", "a\n"), 1,
        part);
  };
  const auto vectors = [](int64_t rows, int64_t cols) {
    return write_npy(std::array<int64_t, 2>{rows, cols},
                     std::vector<float>(static_cast<size_t>(rows * cols), 1));
  };
  refused(vectors(7, 9), "v.npy has 7 vectors, but " + kText8 + " has 8 lines; there must be one for each");
  refused(vectors(8, 11), "v.npy: its vectors have 11 numbers, those of the model 9");
  refused(write_npy(std::array<int64_t, 1>{72}, std::vector<float>(72, 1)),
          "v.npy: expected vectors, floating point [lines, 9], got floating point of shape [72]");
  refused(write_npy(std::array<int64_t, 2>{8, 9}, std::vector<int32_t>(72, 1)),
          "got integers of shape [8, 9]");
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    std::vector<float> numbers(72, 1);
    numbers[5 * 9 + 8] = bad;
    refused(write_npy(std::array<int64_t, 2>{8, 9}, numbers),
            "v.npy: vector 6 has numbers that are not finite");
  }
  refused("text\n", "v.npy: not a .npy file");
  refused(vectors(8, 9).substr(0, 200), "v.npy: expected 288 bytes of elements");
  expect_error(embed("--nearest 2 '" + kText8 + "' --vectors /no/such.npy", "a\n"), 1, "/no/such.npy");
  expect_error(embed("--vectors x.npy", "a\n"), 2, "--nearest");
}

TEST_F(EmbedVerb, ComparesVectorsWithAndWithoutHeads) {
  const std::string mute = "--mute 'encoder.1.self_attention.*' ", text = "the cat\nbirds sleep\ntwo dogs\n";
  const ToolResult found = embed("--compare " + mute, text);
  ASSERT_EQ(found.status, 0) << found.err;
  const auto lines = lines_of(found.out);
  ASSERT_EQ(lines.size(), 3u + 2);
  // The cosine, from the vectors that both ways write.
  const auto vectors = [&](const std::string& flags) {
    std::vector<std::vector<double>> rows;
    for (const auto& line : lines_of(embed(flags, text).out)) rows.push_back(json::parse(line)["vector"]);
    return rows;
  };
  const auto whole = vectors(""), muted = vectors(mute);
  double sum = 0, least = 1;
  for (size_t i = 0; i < 3; ++i) {
    double product = 0, a = 0, b = 0;
    for (size_t j = 0; j < 9; ++j)
      product += whole[i][j] * muted[i][j], a += whole[i][j] * whole[i][j], b += muted[i][j] * muted[i][j];
    const double cosine = product / std::sqrt(a * b);
    EXPECT_NEAR(std::stod(lines[i]), cosine, 2e-6);
    EXPECT_THAT(lines[i], testing::EndsWith("  " + lines_of(text)[i]));
    EXPECT_LT(cosine, 1 - 1e-4) << "mute more";
    sum += cosine, least = std::min(least, cosine);
  }
  EXPECT_THAT(lines[4], testing::StartsWith("mean cosine of 3 lines: "));
  EXPECT_NEAR(std::stod(lines[4].substr(24)), sum / 3, 2e-6);
  EXPECT_NEAR(std::stod(lines[4].substr(lines[4].find("least: ") + 7)), least, 2e-6);
  const std::string file = scratch / "out";
  EXPECT_EQ(embed("--compare -o '" + file + "' " + mute, text).out, "");
  EXPECT_EQ(scratch.read("out"), found.out);
  EXPECT_EQ(embed("--compare " + mute, "").out, "nothing to embed\n");
  expect_error(embed("--compare", text), 2, "--mute");
  expect_error(embed("--compare --similarity a b " + mute), 2, "--similarity");
  expect_error(embed("--compare --format raw " + mute, text), 2, "--format");
}

TEST_F(EmbedVerb, ReadsPairsOfTexts) {
  const std::string pairs = scratch.write("pairs", "birds sleep\na cat\n");
  const ToolResult found = embed("--input-pair '" + pairs + "'", "the cat\ntwo dogs\n");
  ASSERT_EQ(found.status, 0) << found.err;
  const auto lines = lines_of(found.out);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(json::parse(lines[0])["pair"], "birds sleep");
  EXPECT_NE(json::parse(lines[0])["vector"], json::parse(embed("", "the cat\n").out)["vector"]);
  expect_error(embed("--input-pair '" + pairs + "'", "the cat\n"), 1,
               "pairs: expected a line for each line of standard input, got 2 for 1");
  expect_error(embed("--input-pair '" + pairs + "'", "a\nb\nc\n"), 1, "got 2 for 3");
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
  expect_error(run_tool("embed"), 2, "the model folder is missing; give it as multihead embed MODEL");
}

}  // namespace
}  // namespace mh
