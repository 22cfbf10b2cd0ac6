// SentencePiece models against the library's answers (tests/oracles/sentencepiece_goldens.py), hostile ones,
// and ids from another vocabulary.
#include "multihead/text/sentencepiece_model.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "multihead/base/error.h"
#include "multihead/base/file.h"
#include "multihead/text/tokenizer.h"
#include "tests/support/goldens.h"
#include "tests/support/places.h"
#include "tests/support/scratch_folder.h"
#include "tests/text/answers.h"

namespace mh {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

void expect_answers(const std::filesystem::path& folder, const std::vector<std::string>& texts) {
  for (const json& kind : json::parse(read_file(folder / "answers.json"))) {
    const std::string file = kind["kind"].get<std::string>() + ".model";
    SCOPED_TRACE(file);
    const Tokenizer tokenizer(read_sentencepiece_model(read_file(folder / file), file));
    EXPECT_EQ(tokenizer.size(), kind["size"].get<int32_t>());
    ASSERT_EQ(texts.size(), kind["texts"].size());
    for (size_t i = 0; i < texts.size() && !testing::Test::HasFailure(); ++i) {
      const json& expected = kind["texts"][i];
      SCOPED_TRACE(texts[i].substr(0, 200));
      const Encoding encoding = tokenizer.encode(texts[i]);
      if (expected.contains("ids")) {
        EXPECT_EQ(encoding.ids, expected["ids"].get<std::vector<int32_t>>());
      }
      std::string pieces;
      for (const std::string& piece : encoding.tokens) pieces += piece;
      EXPECT_EQ(hash_of(encoding.ids), expected["hashes"][0].get<std::string>()) << "ids";
      EXPECT_EQ(hash_of_bytes(pieces), expected["hashes"][1].get<std::string>()) << pieces;
      EXPECT_EQ(hash_of_bytes(tokenizer.decode(encoding.ids)), expected["hashes"][2].get<std::string>())
          << tokenizer.decode(encoding.ids);
      EXPECT_EQ(tokenizer.encode_ids(texts[i]), encoding.ids);
    }
  }
}

TEST(SentencePieceModel, AgreesWithTheLibrary) {
  expect_answers(kGoldens / "sentencepiece", lines_of(read_file(kGoldens / "torture" / "torture.txt")));
}

/// The torture set and some plain lines, without U+0000, which are written to `path` as well.
std::vector<std::string> texts_in(const std::filesystem::path& path) {
  std::vector<std::string> texts = {"snow \u2603\u2603 and \u2603 \U0001d4b3"};
  for (const char* file : {"torture/torture.txt", "text/small.txt"}) {
    for (const std::string& line : lines_of(read_file(kGoldens / file))) {
      if (line.find('\0') == std::string::npos) texts.push_back(line);
    }
  }
  std::string joined;
  for (size_t i = 0; i < texts.size(); ++i) joined += (i > 0 ? "\n" : "") + texts[i];
  write_file_atomically(path, joined);
  return texts;
}

TEST(SlowSentencePieceOracle, AgreesWithTheLibraryOnItsUsualNormalisation) {
  const char* python = std::getenv("MULTIHEAD_PYTHON");
  if (python == nullptr) GTEST_SKIP() << "set MULTIHEAD_PYTHON to a Python with sentencepiece";
  const test::ScratchFolder scratch;
  const std::vector<std::string> texts = texts_in(scratch / "texts");
  const std::string command =
      fmt::format("{} {}/tests/oracles/sentencepiece_goldens.py --live {} {}", python, source_folder(),
                  scratch.path().string(), (scratch / "texts").string());
  ASSERT_EQ(std::system(command.c_str()), 0) << command;
  expect_answers(scratch.path(), texts);
}

std::string model_file(const std::string& kind) {
  return read_file(kGoldens / "sentencepiece" / (kind + ".model"));
}

TEST(SentencePieceModel, TakesTheIdsOfAVocabulary) {
  TokenizerParts parts = read_sentencepiece_model(model_file("unigram"), "unigram.model");
  const Tokenizer own(parts);
  std::vector<std::pair<std::string, int32_t>> vocabulary = {{"</s>", 0}, {"<unk>", 1}, {"\u2603\u2603", 2}};
  for (int32_t id = 3; id < own.size(); id += 2) {  // every second piece is left out
    vocabulary.emplace_back(own.token_of(id), static_cast<int32_t>(vocabulary.size()));
  }
  use_vocabulary(parts, vocabulary, "<unk>");
  parts.added_tokens = {{.id = 0, .content = "</s>"}, {.id = 1, .content = "<unk>"}};
  const Tokenizer other(parts);
  const std::string text = "The cat sits on the mat \u2603\u2603 and \u2603 looks.";
  const std::vector<std::string> pieces = own.encode(text).tokens;
  const std::vector<int32_t> ids = other.encode_ids(text);
  ASSERT_EQ(ids.size(), pieces.size());
  int known = 0;
  for (size_t i = 0; i < ids.size(); ++i) {
    EXPECT_EQ(ids[i], other.id_of(pieces[i]).value_or(1)) << pieces[i];
    known += ids[i] != 1 ? 1 : 0;
  }
  EXPECT_GT(known, 4);
  EXPECT_LT(known, static_cast<int>(ids.size()));
  EXPECT_THAT(ids, testing::Contains(2));
  EXPECT_THROW(use_vocabulary(parts, {{"a", 0}}, "<unk>"), FormatError);
  EXPECT_THROW(other.to_json(), UsageError);
}

std::string complaint_about(const std::string& bytes) {
  try {
    const Tokenizer tokenizer(read_sentencepiece_model(bytes, "bad.spm"));
    tokenizer.decode(tokenizer.encode_ids("The cat </s> sits \u00df\u00e9 \u6f22"));
  } catch (const FormatError& error) {
    return error.what();
  }
  return "accepted";
}
std::string field(int number, const std::string& bytes) {
  return std::string(1, static_cast<char>(number << 3 | 2)) + static_cast<char>(bytes.size()) + bytes;
}
/// The same for more than 127 bytes.
std::string bytes_field(int number, const std::string& bytes) {
  std::string head(1, static_cast<char>(number << 3 | 2));
  for (size_t rest = bytes.size(); rest > 0; rest >>= 7)
    head += static_cast<char>((rest & 0x7F) | (rest > 0x7F ? 0x80 : 0));
  return head + bytes;
}
std::string piece(const std::string& text, int type, const std::string& score = std::string(4, '\0')) {
  return field(1, field(1, text) + "\x15" + score + "\x18" + static_cast<char>(type));
}

TEST(HostileSentencePieceModel, IsRefusedInOneLine) {
  const std::string least = piece("<unk>", 2) + piece("a", 1);
  ASSERT_EQ(complaint_about(least), "accepted");
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "it has no pieces"},
      {"PK\x03\x04 and more", "not a SentencePiece model"},
      {"{\"model\":1}", "not a SentencePiece model"},
      {std::string(11, '\xff'), "a number of more than 10 bytes"},
      {"\x0a", "cut short"},
      {std::string("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 10),
       "9223372036854775807 bytes expected, 0 left"},
      {"\x08\x01", "field 1 has no bytes"},
      {piece("a", 1), "has no unknown piece"},
      {piece("<unk>", 2), "it has no pieces"},
      {least + piece("<unk>2", 2), "two unknown pieces"},
      {least + piece("", 1), "piece 2 of the SentencePiece model has no text"},
      {least + piece("\xff", 1), "is not UTF-8"},
      {least + piece("b", 5), "'b' is a piece of type 5"},
      {least + piece("b", 9), "'b' is a piece of type 9"},
      {least + piece("b", 1, std::string("\0\0\xc0\x7f", 4)), "the score of 'b' is no number"},
      {least + field(2, "\x18\x03"), "type 3 is not supported"},
      {least + field(2, std::string("\xc0\x01\x01")), "treat_whitespace_as_suffix"},
      {least + field(3, field(2, "abc")), "map of 3 bytes has no trie"},
      {least + field(3, field(2, std::string("\xff\xff\xff\xff\0\0\0\0", 8))), "no trie of 4294967295 bytes"},
      {least + field(3, "\x1d\x01\x01\x01\x01"), "field 3 is no number"},
      {least + field(5, field(2, std::string("\x04\0\0\0\0\0\0\0", 8))), "denormalizer"},
  };
  for (const auto& [bytes, expected] : cases) {
    SCOPED_TRACE(expected);
    EXPECT_THAT(complaint_about(bytes),
                AllOf(StartsWith("bad.spm: "), HasSubstr(expected), Not(HasSubstr("\n"))));
  }
  EXPECT_THAT(complaint_about(least + piece("a", 1)), HasSubstr("the token 'a' is there twice"));
  std::string many;
  for (int i = 0; i <= 1 << 19; ++i) many += piece("b", 1);
  EXPECT_THAT(complaint_about(least + many), HasSubstr("has more than 524288 pieces"));
  // Each place where a piece can be cut is looked at once: in the square of its length, minutes.
  const std::string letters(2'000'000, 'a');
  const std::string longest =
      bytes_field(1, bytes_field(1, letters) + std::string("\x15\0\0\0\0\x18\x01", 7));
  EXPECT_EQ(complaint_about(least + field(2, "\x18\x02") + longest), "accepted");
}

TEST(HostileSentencePieceModel, FlippedBitsAndCutsNeverCrash) {
  for (const std::string kind : {"unigram", "bpe"}) {
    const std::string whole = model_file(kind);
    for (size_t i = 0; i < whole.size(); i += 5) {
      std::string flipped = whole;
      flipped[i] = static_cast<char>(flipped[i] ^ (1 << (i / 5 % 8)));
      ASSERT_THAT(complaint_about(flipped), Not(HasSubstr("\n")));
      if (i % 35 == 0) {
        ASSERT_THAT(complaint_about(whole.substr(0, i)), Not(HasSubstr("\n")));
      }
    }
  }
}

TEST(SentencePieceModel, LongTextsTakeTimeInProportion) {
  std::string word;
  for (int i = 0; i < 150'000; ++i) word += "ab";
  for (const std::string kind : {"unigram", "bpe"}) {
    const Tokenizer tokenizer(read_sentencepiece_model(model_file(kind), kind));
    EXPECT_GT(tokenizer.encode_ids(word).size(), 100'000u);
    tokenizer.encode_ids(std::string(300'000, ' ') + "\u2581");
  }
}

}  // namespace
}  // namespace mh
