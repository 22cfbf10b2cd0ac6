// tests/goldens/torture/torture.txt (accents, scripts, emoji, control characters, words of 10,000 characters)
// line by line and as a whole, with a tokenizer of every kind, against Hugging Face's answers.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "multihead/base/error.h"
#include "multihead/base/file.h"
#include "multihead/text/tokenizer.h"
#include "tests/support/places.h"
#include "tests/text/answers.h"

namespace mh {
namespace {

using nlohmann::json;
const std::filesystem::path kTorture = std::filesystem::path(goldens_folder()) / "torture";

class Torture : public testing::TestWithParam<std::string> {
 protected:
  static const json& golden() {
    static const json document = json::parse(read_file(kTorture / "goldens.json"));
    for (const json& file : document["files"]) {
      if (file["file"] == GetParam() + ".json") return file;
    }
    throw std::runtime_error("no golden of " + GetParam());
  }
  static void expect_answers(const Tokenizer& tokenizer) {
    const std::string whole = read_file(kTorture / "torture.txt");
    std::vector<std::string> texts = lines_of(whole);
    texts.push_back(whole);
    ASSERT_EQ(texts.size(), golden()["texts"].size());
    EXPECT_EQ(tokenizer.size(), golden()["size"].get<int32_t>());
    for (size_t i = 0; i < texts.size(); ++i) expect_answer(tokenizer, texts[i], golden()["texts"][i]);
  }
};

TEST_P(Torture, AgreesWithHuggingFace) {
  expect_answers(Tokenizer::from_json(read_file(kTorture / (GetParam() + ".json")), GetParam()));
}

TEST_P(Torture, AgreesAfterWritingAndReadingBack) {
  const Tokenizer tokenizer = Tokenizer::from_json(read_file(kTorture / (GetParam() + ".json")), GetParam());
  const std::string written = tokenizer.to_json();
  const Tokenizer again = Tokenizer::from_json(written, "again");
  expect_answers(again);
  EXPECT_EQ(again.to_json(), written);
  EXPECT_EQ(again.truncation(), tokenizer.truncation());
}

INSTANTIATE_TEST_SUITE_P(Kinds, Torture,
                         testing::Values("word_piece_uncased", "word_piece_cased", "word_piece_accents",
                                         "unigram_metaspace", "unigram_bytes", "byte_level_gpt2",
                                         "byte_level_llama3", "byte_level_qwen2", "byte_level_o200k",
                                         "byte_level_tekken", "byte_level_smollm", "bpe_bytes"),
                         [](const auto& kind) { return kind.param; });

/// That longer ones take time in proportion is for long_texts_test.cpp.
TEST_P(Torture, LongWordsAreTheSameWithOffsets) {
  std::string file = read_file(kTorture / (GetParam() + ".json"));
  constexpr std::string_view kMost = "\"max_input_chars_per_word\":";
  if (const size_t at = file.find(kMost); at != std::string::npos) file.insert(at + kMost.size(), "1000000");
  const Tokenizer tokenizer = Tokenizer::from_json(file, GetParam());
  for (const std::string unit :
       {"a", "ab", "the", "e\u0301", "\u6f22", "\U0001f600\u200d", "12", " ", "\n ", "!?", "A"}) {
    std::string word;
    while (word.size() < 10'000) word += unit;
    const std::vector<int32_t> ids = tokenizer.encode_ids(word);
    EXPECT_EQ(tokenizer.encode(word).ids, ids) << unit;
    tokenizer.decode(ids);
  }
}

TEST_P(Torture, RefusesWhatIsNotUtf8WithItsPlace) {
  const Tokenizer tokenizer = Tokenizer::from_json(read_file(kTorture / (GetParam() + ".json")), GetParam());
  for (const std::string bad : {"\xff", "\xc3", "\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe6\xbc"}) {
    try {
      tokenizer.encode("ab\u00df" + bad + "c");
      ADD_FAILURE() << "accepted";
    } catch (const FormatError& error) {
      EXPECT_STREQ(error.what(), "text to encode: not UTF-8 at byte 4");
    }
    EXPECT_THROW(tokenizer.encode_ids(bad), FormatError);
  }
}

// BertProcessing says [CLS] first, a template its tokens by name.
TEST(BertProcessing, IsWrittenAlikeWhateverItsTokensAreCalled) {
  for (const std::string cls : {"[CLS]", "[XLS]"}) {
    const std::string given = fmt::format(
        R"({{"added_tokens":[],"normalizer":null,"pre_tokenizer":null,"decoder":null,"post_processor":{{"type":)"
        R"("BertProcessing","sep":["[SEP]",1],"cls":["{0}",0]}},"model":{{"type":"WordLevel","unk_token":"[SEP]",)"
        R"("vocab":{{"{0}":0,"[SEP]":1}}}}}})",
        cls);
    const std::string written = Tokenizer::from_json(given, "given").to_json();
    EXPECT_EQ(Tokenizer::from_json(written, "written").to_json(), written);
  }
}

TEST(Truncation, IsKeptNotObeyed) {
  const Tokenizer tokenizer =
      Tokenizer::from_json(read_file(kTorture / "word_piece_uncased.json"), "word_piece_uncased.json");
  EXPECT_EQ(tokenizer.truncation(), 128);
  EXPECT_GT(tokenizer.encode_ids(std::string(400, '!')).size(), 400u);
  const Tokenizer other = Tokenizer::from_json(read_file(kTorture / "word_piece_cased.json"), "other");
  EXPECT_EQ(other.truncation(), std::nullopt);
}

}  // namespace
}  // namespace mh
