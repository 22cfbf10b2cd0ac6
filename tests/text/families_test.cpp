// Tokenizers with the parts of those of Gemma, GPT-NeoX, OPT, Phi, OLMo 2, BART, T5, mBART, NLLB and others on odd lines, against
// the answers of Hugging Face and SentencePiece (tests/oracles/family_goldens.py): some lines always, 2,000 where
// MULTIHEAD_PYTHON names a Python.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "multihead/base/file.h"
#include "multihead/text/sentencepiece_model.h"
#include "multihead/text/tokenizer.h"
#include "tests/support/goldens.h"
#include "tests/support/places.h"
#include "tests/support/scratch_folder.h"
#include "tests/text/answers.h"

namespace mh {
namespace {

using nlohmann::json;

void expect_family(const Tokenizer& tokenizer, const json& lines, const json& golden) {
  EXPECT_EQ(tokenizer.size(), golden["size"].get<int32_t>());
  ASSERT_EQ(golden["texts"].size(), lines.size());
  for (size_t i = 0; i < lines.size() && !testing::Test::HasFailure(); ++i)
    expect_answer(tokenizer, lines[i], golden["texts"][i]);
  EXPECT_FALSE(golden["decoded"].empty());
  for (const json& list : golden["decoded"]) {
    const auto ids = list[0].get<std::vector<int32_t>>();
    EXPECT_EQ(hash_of_bytes(tokenizer.decode(ids)), list[1].get<std::string>()) << list[0].dump();
  }
}

void expect_pieces(const std::string& name, const json& lines, const json& golden) {
  const Tokenizer tokenizer(read_sentencepiece_model(read_file(kGoldens / "families" / name), name));
  EXPECT_EQ(tokenizer.size(), golden["size"].get<int32_t>());
  ASSERT_EQ(golden["texts"].size(), lines.size());
  for (size_t i = 0; i < lines.size() && !testing::Test::HasFailure(); ++i) {
    SCOPED_TRACE(lines[i].dump());
    const std::string line = lines[i];
    const json& expected = golden["texts"][i];
    const Encoding encoding = tokenizer.encode(line);
    if (const auto ids = expected["ids"].get<std::vector<int32_t>>(); !ids.empty()) {
      EXPECT_EQ(encoding.ids, ids);
    }
    std::string pieces;
    for (const std::string& piece : encoding.tokens) pieces += piece;
    EXPECT_EQ(hash_of(encoding.ids), expected["hashes"][0].get<std::string>()) << "ids";
    EXPECT_EQ(hash_of_bytes(pieces), expected["hashes"][1].get<std::string>()) << pieces;
    const std::string decoded = tokenizer.decode(encoding.ids);
    EXPECT_EQ(hash_of_bytes(decoded), expected["hashes"][2].get<std::string>()) << decoded;
    EXPECT_EQ(tokenizer.encode_ids(line), encoding.ids);
  }
}

void expect_families(const json& goldens) {
  for (const json& golden : goldens["files"]) {
    const auto name = golden["file"].get<std::string>();
    SCOPED_TRACE(name);
    if (name.ends_with(".model")) {
      expect_pieces(name, goldens["lines"], golden);
      continue;
    }
    const Tokenizer tokenizer = Tokenizer::from_json(read_file(kGoldens / "families" / name), name);
    expect_family(tokenizer, goldens["lines"], golden);
    const std::string written = tokenizer.to_json();
    const Tokenizer again = Tokenizer::from_json(written, "again");
    expect_family(again, goldens["lines"], golden);
    EXPECT_EQ(again.to_json(), written);
  }
}

TEST(FamilyTokenizers, AgreeWithHuggingFace) {
  const json goldens = json::parse(read_file(kGoldens / "families" / "goldens.json"));
  EXPECT_EQ(goldens["files"].size(), 26u);
  expect_families(goldens);
}

TEST(SlowFamilyTokenizersOracle, AgreeWithHuggingFaceOnTwoThousandLines) {
  const char* python = std::getenv("MULTIHEAD_PYTHON");
  if (python == nullptr) GTEST_SKIP() << "set MULTIHEAD_PYTHON to a Python with tokenizers";
  const char* seed = std::getenv("MULTIHEAD_SEED");
  const test::ScratchFolder scratch;
  const std::string command =
      fmt::format("{} {}/tests/oracles/family_goldens.py --live {} {} 2000", python, source_folder(),
                  (scratch / "answers.json").string(), seed == nullptr ? 15 : std::atoi(seed));
  ASSERT_EQ(std::system(command.c_str()), 0) << command;
  expect_families(json::parse(read_file(scratch / "answers.json")));
}

}  // namespace
}  // namespace mh
