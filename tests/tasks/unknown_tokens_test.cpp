// What a tokenizer does not know is counted and quoted as it stands in the text, however long the line is.
#include "multihead/text/unknown_tokens.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "multihead/base/random.h"
#include "multihead/folders/sentence_model.h"
#include "multihead/models/encoder_decoder.h"
#include "multihead/models/translator_shape.h"
#include "multihead/tasks/embed_text.h"
#include "multihead/tasks/model_text.h"
#include "multihead/text/tokenizer_parts.h"
#include "tests/support/places.h"

namespace mh {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// Words between spaces; it knows five of them.
Tokenizer words() {
  TokenizerParts parts;
  parts.model.kind = TokenModel::Kind::kWordLevel;
  parts.model.unknown_token = "<unk>";
  parts.model.vocabulary = {{"</s>", 0}, {"<unk>", 1}, {"<pad>", 2},         {"the", 3},
                            {"dog", 4},  {"sees", 5},  {"k\u00e4tzchen", 6}, {"\u72ac", 7}};
  parts.pre_tokenizers.emplace_back().kind = PreTokenizerStep::Kind::kWhitespaceSplit;
  return Tokenizer(std::move(parts));
}

UnknownTokens unknown_of(const std::vector<std::string>& lines, const Tokenizer& tokenizer) {
  UnknownTokens unknown;
  for (const std::string& line : lines) unknown.add(line, tokenizer);
  return unknown;
}

TEST(UnknownTokens, AreQuotedAsTheyStandInTheText) {
  const UnknownTokens unknown =
      unknown_of({"the \u72ac sees \u6f22\u5b57 dog", "the dog",
                  "k\u00e4tzchen sees \U0001f600 zebra \u6f22\u5b57", "\u2603 dog zebra  \u00e9"},
                 words());
  EXPECT_EQ(unknown.tokens, 7);
  EXPECT_EQ(unknown.lines, 3);
  EXPECT_THAT(unknown.examples, ElementsAre("\u6f22\u5b57", "\U0001f600", "zebra", "\u2603", "\u00e9"));
  EXPECT_EQ(unknown_of({"", "the dog"}, words()).in_words(), "");
  EXPECT_EQ(unknown_of({"x"}, words()).in_words(), "1 unknown token in 1 line, e.g. 'x'");
}

// Random lines: as many as there are unknown words, and the first five that differ in their order.
TEST(UnknownTokens, AreThoseOfTheWords) {
  const std::vector<std::string> known{"the", "dog", "sees", "k\u00e4tzchen", "\u72ac"},
      others{"a", "\u00e9t\u00e9", "\u6f22", "\U0001d4b3\U0001d4b3", "zebra", "\u2603\u2603", "dogs"};
  const Tokenizer tokenizer = words();
  Random random(11);
  for (int round = 0; round < 60; ++round) {
    std::string line;
    std::vector<std::string> expected;
    int64_t tokens = 0;
    for (uint32_t i = random.below(23); i > 0; --i) {
      const bool is_known = random.below(2) == 0;
      const auto& from = is_known ? known : others;
      const std::string& word = from[random.below(static_cast<uint32_t>(from.size()))];
      line += (line.empty() ? "" : " ") + word;
      if (is_known) continue;
      ++tokens;
      if (std::find(expected.begin(), expected.end(), word) == expected.end() && expected.size() < 5)
        expected.push_back(word);
    }
    const UnknownTokens unknown = unknown_of({line}, tokenizer);
    EXPECT_EQ(unknown.tokens, tokens) << line;
    EXPECT_EQ(unknown.lines, tokens > 0 ? 1 : 0);
    EXPECT_EQ(unknown.examples, expected) << line;
  }
}

/// Most of them unknown, all alike, so that new examples are looked for to the end.
std::string long_line() {
  constexpr size_t kWords = 1'000'000;
  std::string line;
  for (size_t i = 0; i < kWords; ++i) line += i % 7 == 0 ? "dog " : "aa ";
  return line + "last";
}

// No time is measured: in the square of its length a line takes an hour, and the test programs are stopped after
// less.
TEST(SlowUnknownTokens, OfALineOfAMillionWords) {
  const UnknownTokens unknown = unknown_of({long_line()}, words());
  EXPECT_EQ(unknown.tokens, 1'000'000 - 142'858 + 1);
  EXPECT_THAT(unknown.examples, ElementsAre("aa", "last"));
}

TEST(SlowUnknownTokens, OfALongLineThatIsTranslated) {
  ModelFolder folder;
  folder.tokenizer = words();
  TranslatorShape shape;
  shape.vocabulary_size = folder.tokenizer->size();
  shape.d_model = 6;
  shape.encoder_layers = shape.decoder_layers = 1;
  shape.encoder_heads = shape.decoder_heads = 3;
  shape.encoder_ff = shape.decoder_ff = 7;
  shape.max_positions = 13;
  shape.eos_id = 0;
  shape.pad_id = shape.decoder_start_id = 2;
  folder.model = std::make_unique<EncoderDecoder>(shape.config());
  ModelText text(folder);
  EXPECT_EQ(text.sources_to_translate({long_line()}, {.name = "text"})[0].size(), 13u);
  EXPECT_THAT(text.unknown().examples, ElementsAre("aa", "last"));
}

TEST(SlowUnknownTokens, OfALongLineThatIsEmbedded) {
  const SentenceModel model =
      load_sentence_model(std::filesystem::path(goldens_folder()) / "sentences" / "dense");
  std::vector<std::string> remarks;
  embed_text(model, {long_line()}, {.remark = [&](const std::string& line) { remarks.push_back(line); }});
  EXPECT_THAT(remarks,
              testing::Contains(HasSubstr("1000001 unknown tokens in 1 line, e.g. 'dog', 'aa', 'last'")));
}

}  // namespace
}  // namespace mh
