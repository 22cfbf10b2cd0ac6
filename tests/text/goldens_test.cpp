// Every tokenizer file under tests/goldens/text against Hugging Face's own answers
// (tests/oracles/tokenizers_goldens.py).
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "multihead/base/file.h"
#include "multihead/text/tokenizer.h"
#include "tests/support/goldens.h"

namespace mh {
namespace {

using nlohmann::json;

const json& goldens() {
  static const json document = json::parse(read_file(kGoldens / "text" / "goldens.json"));
  return document;
}

void expect_same(const Tokenizer& tokenizer, const json& golden) {
  for (const json& expected : golden["texts"]) {
    const std::string text = expected["text"];
    SCOPED_TRACE(expected["text"].dump());
    const Encoding encoding = tokenizer.encode(text);
    EXPECT_EQ(encoding.ids, expected["ids"].get<std::vector<int32_t>>());
    EXPECT_EQ(encoding.tokens, expected["tokens"].get<std::vector<std::string>>());
    EXPECT_EQ(encoding.offsets, (expected["offsets"].get<std::vector<std::pair<int32_t, int32_t>>>()));
    EXPECT_EQ(tokenizer.encode_ids(text), encoding.ids);
    EXPECT_EQ(tokenizer.encode_ids(text, false), expected["plain_ids"].get<std::vector<int32_t>>());
    EXPECT_EQ(tokenizer.encode(text, false).ids, expected["plain_ids"].get<std::vector<int32_t>>());
    const auto ids = expected["ids"].get<std::vector<int32_t>>();
    EXPECT_EQ(tokenizer.decode(ids), expected["decoded"].get<std::string>());
    EXPECT_EQ(tokenizer.decode(ids, false), expected["decoded_with_special_tokens"].get<std::string>());
  }
}

class Goldens : public testing::TestWithParam<std::string> {
 protected:
  const json& golden() {
    for (const json& file : goldens()["files"]) {
      if (file["file"] == GetParam()) return file;
    }
    throw std::runtime_error("no golden of " + GetParam());
  }
  Tokenizer tokenizer() {
    return Tokenizer::from_json(read_file(kGoldens / "text" / GetParam()), GetParam());
  }
};

TEST_P(Goldens, AgreesWithHuggingFace) {
  ASSERT_GT(golden()["texts"].size(), 40u);
  EXPECT_EQ(tokenizer().size(), golden()["size"].get<int32_t>());
  expect_same(tokenizer(), golden());
}

TEST_P(Goldens, AgreesAfterWritingAndReadingBack) {
  const std::string written = tokenizer().to_json();
  const Tokenizer again = Tokenizer::from_json(written, "again");
  expect_same(again, golden());
  EXPECT_EQ(again.to_json(), written);
}

INSTANTIATE_TEST_SUITE_P(Files, Goldens,
                         testing::Values("learned.json", "learned_lower.json", "learned_words.json",
                                         "hf_word_level.json", "hf_byte_level.json",
                                         "hf_byte_level_prefix.json", "hf_metaspace.json",
                                         "hf_metaspace_first.json", "hf_metaspace_never.json",
                                         "hf_metaspace_whole.json", "hf_end_of_word.json",
                                         "hf_continuing_prefix.json", "hf_byte_fallback.json"),
                         [](const auto& file) { return file.param.substr(0, file.param.find('.')); });

}  // namespace
}  // namespace mh
