// Text that comes token by token is the text of all tokens, and each character comes as early as it can.
#include "multihead/generate/text_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "multihead/base/error.h"
#include "multihead/base/random.h"
#include "multihead/base/utf8.h"
#include "multihead/generate/stop_strings.h"
#include "multihead/generate/stopped_text.h"
#include "multihead/text/tokenizer_parts.h"
#include "tests/generate/generate_golden.h"

namespace mh {
namespace {

using testing::ElementsAre;

Tokenizer byte_level() {
  return Tokenizer::from_json(read_file(test::generate_folder() / "tokenizer.json"), "tokenizer.json");
}

Tokenizer byte_fallback() {
  TokenizerParts parts;
  parts.model.byte_fallback = true;
  for (int byte = 0; byte < 256; ++byte)
    parts.model.vocabulary.emplace_back(fmt::format("<0x{:02X}>", byte), byte);
  for (const char* token : {"▁a", "b", "▁"})
    parts.model.vocabulary.emplace_back(token, static_cast<int32_t>(parts.model.vocabulary.size()));
  using Kind = DecoderStep::Kind;
  DecoderStep replace{.kind = Kind::kReplace, .content = " "};
  replace.pattern.literal = "▁";
  parts.decoders = {replace,
                    {.kind = Kind::kByteFallback},
                    {.kind = Kind::kFuse},
                    {.kind = Kind::kStrip, .content = " ", .start = 1}};
  return Tokenizer(parts);
}

std::vector<std::string> pieces(const Tokenizer& tokenizer, const std::vector<int32_t>& tokens,
                                const std::vector<int32_t>& before = {}) {
  TextStream stream(tokenizer, before);
  std::vector<std::string> found;
  for (const int32_t token : tokens) found.push_back(stream.add(token));
  found.push_back(stream.finish());
  return found;
}

std::string joined(const std::vector<std::string>& all) {
  std::string text;
  for (const std::string& piece : all) text += piece;
  return text;
}

/// The ids of the bytes of a byte-level tokenizer.
std::vector<int32_t> bytes_of(const Tokenizer& tokenizer, std::initializer_list<int> bytes) {
  std::vector<int32_t> ids;
  for (const int byte : bytes) {
    for (int32_t id = 0; id < tokenizer.size(); ++id) {
      // A byte that is no character alone is found between two that complete it.
      const std::string text = tokenizer.decode(std::vector<int32_t>{id}, false);
      if (byte < 0x80 && text == std::string(1, static_cast<char>(byte))) ids.push_back(id);
    }
    if (byte < 0x80) continue;
    // GPT-2's alphabet of bytes: those that are printable in Latin-1 stand for themselves.
    std::string letter;
    int other = 256;
    for (int b = 0; b < 256; ++b) {
      const bool itself = (b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
      const int code = itself ? b : other++;
      if (b != byte) continue;
      letter += static_cast<char>(0xC0 | code >> 6);
      letter += static_cast<char>(0x80 | (code & 63));
    }
    ids.push_back(tokenizer.id_of(letter).value());
  }
  return ids;
}

TEST(TextStream, ACharacterComesWithItsLastByte) {
  const Tokenizer tokenizer = byte_level();
  EXPECT_THAT(pieces(tokenizer, bytes_of(tokenizer, {'a', 0xE6, 0xBC, 0xA2, 'b', 0xC3, 0xA4})),
              ElementsAre("a", "", "", "漢", "b", "", "ä", ""));
  EXPECT_THAT(pieces(tokenizer, bytes_of(tokenizer, {0xF0, 0x9F, 0x98, 0x80, 0xF0, 0x9F})),
              ElementsAre("", "", "", "😀", "", "", "\uFFFD"));
}

TEST(TextStream, BytesThatFormNoCharacterDoNotHoldTheTextBack) {
  const Tokenizer tokenizer = byte_level();
  EXPECT_THAT(pieces(tokenizer, bytes_of(tokenizer, {0xE6, 'a', 0x80, 'b'})),
              ElementsAre("", "\uFFFDa", "", "\uFFFDb", ""));
  // However many come: no more than three wait.
  const auto found = pieces(tokenizer, bytes_of(tokenizer, {0x80, 0x80, 0x80, 0x80, 0x80, 0xC3, 0xA4}));
  EXPECT_EQ(joined(found), "\uFFFD\uFFFD\uFFFD\uFFFD\uFFFDä");
  EXPECT_EQ(found[3], "\uFFFD");
  EXPECT_EQ(found[4], "\uFFFD");
}

TEST(TextStream, RunsOfByteTokensAreTakenBackUntilTheyAreWhole) {
  const Tokenizer tokenizer = byte_fallback();
  const int32_t a = 256, b = 257;
  EXPECT_THAT(pieces(tokenizer, {0xE6, 0xBC, 0xA2, 0xE6, 0xBC, 0xA2, b}),
              ElementsAre("", "", "漢", "", "", "漢", "b", ""));
  EXPECT_THAT(pieces(tokenizer, {b, 0xE6, b}), ElementsAre("b", "", "\uFFFDb", ""));
  EXPECT_THAT(pieces(tokenizer, {0xC3, 0xA4, 0xE6, b}), ElementsAre("", "ä", "", "\uFFFDb", ""));
  EXPECT_EQ(joined(pieces(tokenizer, {0xC3, 0xA4, 0x80, 0x80, 0x80, 0x80, 0x80, b})),
            "ä\uFFFD\uFFFD\uFFFD\uFFFD\uFFFDb");
  // The space that a text's first word loses is there behind a prompt.
  EXPECT_THAT(pieces(tokenizer, {a, a}), ElementsAre("a", " a", ""));
  EXPECT_THAT(pieces(tokenizer, {a, a}, {b}), ElementsAre(" a", " a", ""));
}

TEST(TextStream, RandomTokensGiveTheTextOfAllOfThem) {
  const Tokenizer tokenizer = byte_level();
  Random random(5);
  const auto size = static_cast<uint32_t>(tokenizer.size());
  for (int trial = 0; trial < 300; ++trial) {
    std::vector<int32_t> all, before;
    for (uint32_t i = random.below(5); i > 0; --i) all.push_back(static_cast<int32_t>(random.below(size)));
    // What comes first is whole: a prompt was text.
    before = tokenizer.encode_ids(tokenizer.decode(all));
    all = before;
    std::vector<int32_t> tokens;
    for (uint32_t i = random.below(20); i > 0; --i)
      tokens.push_back(static_cast<int32_t>(random.below(size)));
    all.insert(all.end(), tokens.begin(), tokens.end());
    const std::string text = joined(pieces(tokenizer, tokens, before));
    EXPECT_EQ(tokenizer.decode(before) + text, tokenizer.decode(all)) << trial;
    EXPECT_EQ(first_invalid_utf8(text), std::string_view::npos);
  }
}

TEST(StopsAtLast, IsWhereTheTextStops) {
  Random random(7);
  int stopped = 0;
  for (const Tokenizer& tokenizer : {byte_level(), byte_fallback()}) {
    const auto size = static_cast<uint32_t>(tokenizer.size());
    for (int trial = 0; trial < 300; ++trial) {
      std::vector<int32_t> prompt, tokens;
      for (uint32_t i = random.below(4); i > 0; --i)
        prompt.push_back(static_cast<int32_t>(random.below(size)));
      for (int i = 0; i < 23; ++i) {
        // Mostly the same few tokens, so that stop strings of several of them come.
        const uint32_t of = random.below(9) == 0 ? size : 5;
        tokens.push_back(static_cast<int32_t>(size - 1 - random.below(of)));
      }
      const std::string whole = tokenizer.decode(std::span(tokens).subspan(5));
      std::vector<std::string> stop = {"nowhere"};
      if (!whole.empty()) {
        std::string part =
            whole.substr(random.below(static_cast<uint32_t>(whole.size())), 1 + random.below(9));
        if (first_invalid_utf8(part) == std::string::npos) stop.push_back(part);
      }
      StoppedText text(tokenizer, prompt, stop);
      for (size_t i = 0; i < tokens.size() && !text.stopped(); ++i) {
        text.add(tokens[i]);
        EXPECT_EQ(stops_at_last(tokenizer, prompt, std::span(tokens).first(i + 1), stop), text.stopped())
            << trial << " " << i;
      }
      stopped += text.stopped();
    }
    EXPECT_FALSE(stops_at_last(tokenizer, {}, std::vector<int32_t>{1}, {}));
  }
  EXPECT_GT(stopped, 200);
}

TEST(StopStrings, EndTheTextAcrossPieces) {
  StopStrings stop({"the end", "###"});
  EXPECT_EQ(stop.add("It is th"), "It is ");
  EXPECT_EQ(stop.add("is the"), "this ");
  EXPECT_EQ(stop.add(" e"), "");
  EXPECT_EQ(stop.add("nd of it"), "");
  EXPECT_TRUE(stop.found());
  EXPECT_EQ(stop.add("more") + stop.finish(), "");
}

TEST(StopStrings, TheOneThatBeginsFirstCounts) {
  EXPECT_EQ(StopStrings({"b", "abc"}).add("xxabcb"), "xx");
  StopStrings nested({"aab"});
  EXPECT_EQ(nested.add("a"), "");
  EXPECT_EQ(nested.add("aa"), "a");
  EXPECT_EQ(nested.add("b"), "");
  EXPECT_TRUE(nested.found());
  StopStrings waiting({"\n\n"});
  EXPECT_EQ(waiting.add("x\n"), "x");
  EXPECT_EQ(waiting.finish(), "\n");
  EXPECT_FALSE(waiting.found());
  EXPECT_EQ(StopStrings({}).add("all"), "all");
  EXPECT_THROW(StopStrings({"a", ""}), UsageError);
}

}  // namespace
}  // namespace mh
