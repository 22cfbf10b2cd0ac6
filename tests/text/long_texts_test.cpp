// Words and texts of a million characters on every model, word rule, normalizer, pre-tokenizer and decoder.
// No time is measured: in the square of its length, each of these would take minutes to hours, and the test
// programs are stopped after some.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "multihead/base/file.h"
#include "multihead/text/sentencepiece_model.h"
#include "multihead/text/tokenizer.h"
#include "tests/support/goldens.h"

namespace mh {
namespace {

constexpr size_t kCharacters = 1'000'000;

size_t characters_in(const std::string& text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

/// `start`, then `unit` again and again up to a million characters, then `end`.
std::string long_text(const std::string& start, const std::string& unit, const std::string& end = "") {
  std::string text = start;
  for (size_t count = 0; count < kCharacters; count += characters_in(unit)) text += unit;
  return text + end;
}

/// Runs without end, runs that stop short of what an expression waits for, and marks in and out of order.
std::vector<std::string> long_texts() {
  std::vector<std::string> texts;
  for (const char* unit : {"a",
                           "the",
                           "A",
                           "Aa",
                           "1",
                           "!",
                           "'",
                           " ",
                           "\n",
                           " \n",
                           "\u00a0 ",
                           "e\u0301",
                           "\u0301\u0316",
                           "\u6f22",
                           "\U0001f600\u200d",
                           "\uac00",
                           "\u1100\u1161",
                           "\u2581",
                           "\ufb01",
                           "\u02b0A"})
    texts.push_back(long_text("", unit));
  texts.push_back(long_text("x", " ", "y"));
  texts.push_back(long_text("\u02b0", "A", "!"));
  texts.push_back(long_text("e", "\u0316", "\u0301"));
  texts.push_back(long_text("", " <tag>"));
  texts.push_back(long_text("", " ", "<tag>"));
  texts.push_back(long_text("<tag>", " "));
  return texts;
}

enum class Then { kNothing, kDecode };

/// Encodes every text, or every `step`-th.
void expect_answers(const Tokenizer& tokenizer, Then then = Then::kNothing, size_t step = 1) {
  static const std::vector<std::string> texts = long_texts();
  for (size_t i = 0; i < texts.size(); i += step) {
    SCOPED_TRACE(texts[i].substr(0, 8));
    const std::vector<int32_t> ids = tokenizer.encode_ids(texts[i]);
    EXPECT_LE(ids.size(), 8 * texts[i].size());
    if (then == Then::kDecode) tokenizer.decode(ids);
  }
}

class LongTexts : public testing::TestWithParam<std::string> {};

TEST_P(LongTexts, OfEveryModelAndWordRule) {
  const std::filesystem::path path = kGoldens / GetParam();
  std::string file = read_file(path);
  if (path.extension() == ".model")
    return expect_answers(Tokenizer(read_sentencepiece_model(file, GetParam())), Then::kDecode);
  constexpr std::string_view kMost = "\"max_input_chars_per_word\":";
  if (const size_t at = file.find(kMost); at != std::string::npos) file.insert(at + kMost.size(), "1000000");
  const Tokenizer tokenizer = Tokenizer::from_json(file, GetParam());
  expect_answers(tokenizer, Then::kDecode);
  const std::string text = long_text("", "ab\u00e9 ");  // with offsets, which take more of everything
  EXPECT_EQ(tokenizer.encode(text).ids, tokenizer.encode_ids(text));
}

INSTANTIATE_TEST_SUITE_P(Slow, LongTexts,
                         testing::Values("torture/word_piece_uncased.json", "torture/word_piece_cased.json",
                                         "torture/word_piece_accents.json", "torture/unigram_metaspace.json",
                                         "torture/unigram_bytes.json", "torture/byte_level_gpt2.json",
                                         "torture/byte_level_llama3.json", "torture/byte_level_qwen2.json",
                                         "torture/byte_level_o200k.json", "torture/byte_level_tekken.json",
                                         "torture/byte_level_smollm.json", "torture/bpe_bytes.json",
                                         "sentencepiece/unigram.model", "sentencepiece/unigram_bytes.model",
                                         "sentencepiece/bpe.model", "sentencepiece/bpe_bytes.model"),
                         [](const auto& file) {
                           return std::filesystem::path(file.param).stem().string() +
                                  (file.param.starts_with("t") ? "_json" : "_model");
                         });

/// A tokenizer whose tokens are single letters and one that is cut out of the text.
TokenizerParts letters() {
  TokenizerParts parts;
  parts.model.kind = TokenModel::Kind::kBpe;
  parts.model.unknown_token = "?";
  parts.model.vocabulary = {{"?", 0}, {"a", 1}, {"b", 2}, {"<tag>", 3}, {" ", 4}, {"\u0120", 5}};
  parts.added_tokens = {{.id = 3, .content = "<tag>", .lstrip = true, .rstrip = true}};
  return parts;
}

TEST(SlowLongTexts, OfEveryNormalizer) {
  using Kind = NormalizerStep::Kind;
  for (const Kind kind :
       {Kind::kNfc, Kind::kNfkc, Kind::kNfd, Kind::kNfkd, Kind::kLowercase, Kind::kStrip, Kind::kStripAccents,
        Kind::kPrepend, Kind::kReplace, Kind::kBert, Kind::kNmt, Kind::kPrecompiled, Kind::kSentencePiece}) {
    SCOPED_TRACE(static_cast<int>(kind));
    TokenizerParts parts = letters();
    NormalizerStep& step = parts.normalizers.emplace_back();
    step.kind = kind;
    step.content = "b";
    step.pattern.literal = "a";
    step.kept = {"the", "\u2581"};
    expect_answers(Tokenizer(parts));
    if (kind != Kind::kReplace) continue;
    for (const Pattern::Kind pattern : {Pattern::Kind::kWhitespaceRun, Pattern::Kind::kSpaceRun}) {
      parts.normalizers[0].pattern.kind = pattern;
      expect_answers(Tokenizer(parts));
    }
  }
}

TEST(SlowLongTexts, OfEveryPreTokenizer) {
  using Kind = PreTokenizerStep::Kind;
  for (const Kind kind : {Kind::kWhitespace, Kind::kWhitespaceSplit, Kind::kMetaspace, Kind::kByteLevel,
                          Kind::kPunctuation, Kind::kDigits, Kind::kSplit, Kind::kBert}) {
    SCOPED_TRACE(static_cast<int>(kind));
    TokenizerParts parts = letters();
    PreTokenizerStep& step = parts.pre_tokenizers.emplace_back();
    step.kind = kind;
    step.pattern.literal = "a";
    const bool has_behaviors = kind == Kind::kPunctuation || kind == Kind::kSplit;
    for (const SplitBehavior behavior :
         {SplitBehavior::kRemoved, SplitBehavior::kIsolated, SplitBehavior::kMergedWithPrevious,
          SplitBehavior::kMergedWithNext, SplitBehavior::kContiguous}) {
      parts.pre_tokenizers[0].behavior = behavior;
      expect_answers(Tokenizer(parts), Then::kNothing, has_behaviors ? 3 : 1);
      if (!has_behaviors) break;
    }
  }
}

TEST(SlowLongTexts, OfEveryDecoder) {
  using Kind = DecoderStep::Kind;
  for (const Kind kind : {Kind::kMetaspace, Kind::kByteLevel, Kind::kBpe, Kind::kWordPiece, Kind::kFuse,
                          Kind::kByteFallback, Kind::kStrip, Kind::kReplace, Kind::kSentencePiece}) {
    SCOPED_TRACE(static_cast<int>(kind));
    TokenizerParts parts = letters();
    parts.model.vocabulary.insert(parts.model.vocabulary.end(),
                                  {{"<0xE2>", 6}, {"<0x82>", 7}, {"\u2581", 8}});
    DecoderStep& step = parts.decoders.emplace_back();
    step.kind = kind;
    step.affix = "b";
    step.content = "a";
    step.start = step.stop = 1 << 30;
    step.pattern.literal = "b";
    const Tokenizer tokenizer(parts);
    for (int32_t id = 0; id < tokenizer.size(); ++id)
      tokenizer.decode(std::vector<int32_t>(kCharacters, id), false);
    std::vector<int32_t> mixed;
    for (size_t i = 0; i < kCharacters; ++i) mixed.push_back(static_cast<int32_t>(i * 7 % 9));
    tokenizer.decode(mixed, false);
  }
}

}  // namespace
}  // namespace mh
