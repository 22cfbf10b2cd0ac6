// What people see in place of tokens, above all of byte-level ones.
#include <gmock/gmock.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/base/file.h"
#include "multihead/text/byte_level.h"
#include "multihead/text/tokenizer.h"
#include "tests/support/places.h"

namespace mh {
namespace {

using testing::ElementsAre;

Tokenizer tokenizer_of(const char* name) {
  const auto path = std::filesystem::path(goldens_folder()) / "text" / name;
  return Tokenizer::from_json(read_file(path), name);
}

std::vector<std::string> shown_tokens(const Tokenizer& tokenizer, std::string_view text) {
  std::vector<std::string> shown;
  for (const int32_t id : tokenizer.encode_ids(text, false)) shown.push_back(tokenizer.shown(id));
  return shown;
}

/// Undoes what the page says of the form, for texts that have neither U+2581 nor "<0x".
std::string text_of(const std::vector<std::string>& shown) {
  std::string all, text;
  for (const std::string& token : shown) all += token;
  for (size_t at = 0; at < all.size();) {
    if (all.compare(at, 3, "<0x") == 0) {
      text += static_cast<char>(std::stoi(all.substr(at + 3, 2), nullptr, 16));
      at += 6;
    } else if (all.compare(at, 3, "\u2581") == 0) {
      text += ' ';
      at += 3;
    } else {
      text += all[at++];
    }
  }
  return text;
}

TEST(ShownPiece, IsTextWithBytesWhereThereIsNoCharacter) {
  EXPECT_EQ(shown_piece(""), "");
  EXPECT_EQ(shown_piece("\u0120sky"), "\u2581sky");
  EXPECT_EQ(shown_piece("\u00C3\u00BC"), "\u00FC");        // both bytes of a character
  EXPECT_EQ(shown_piece("\u00E6\u00BC"), "<0xE6><0xBC>");  // two of three bytes
  EXPECT_EQ(shown_piece("\u0120\u00E6"), "\u2581<0xE6>");  // a space and a beginning
  EXPECT_EQ(shown_piece("\u00A2."), "<0xA2>.");            // an end and a full stop
  EXPECT_EQ(shown_piece("\u00E6a\u00E6"), "<0xE6>a<0xE6>");
  EXPECT_EQ(shown_piece("\u010A\u010A"), "<0x0A><0x0A>");              // line ends
  EXPECT_EQ(shown_piece("\u00E2\u0122\u00AE"), "<0xE2><0x80><0xAE>");  // U+202E turns the writing round
  EXPECT_EQ(shown_piece("<|im_end|>"), "<|im_end|>");
  EXPECT_EQ(shown_piece("a b \u6F22"), "a\u2581b\u2581\u6F22");  // an added token stands for itself
}

TEST(ShownTokens, OfByteLevelTokenizersAreText) {
  const Tokenizer tokenizer = tokenizer_of("hf_byte_level.json");
  EXPECT_THAT(shown_tokens(tokenizer, "the \u6F22."),
              ElementsAre("the", "\u2581", "<0xE6>", "<0xBC>", "<0xA2>", "."));
  EXPECT_EQ(tokenizer.token_of(*tokenizer.id_of("\u0120to")), "\u0120to");
  EXPECT_EQ(tokenizer.shown(*tokenizer.id_of("\u0120to")), "\u2581to");
  EXPECT_THROW(static_cast<void>(tokenizer.shown(tokenizer.size())), UsageError);
  EXPECT_THROW(static_cast<void>(tokenizer.shown(-1)), UsageError);
}

// The oracle is decoding, which other tests compare with Hugging Face's.
TEST(ShownTokens, TellAllThatDecodingDoes) {
  for (const char* name : {"hf_byte_level.json", "hf_byte_level_prefix.json"}) {
    const Tokenizer tokenizer = tokenizer_of(name);
    for (const std::string text :
         {"two dogs  run .", "Gr\u00FC\u00DFe,\n\n\tdie W\u00F6rter", "\u6F22\u5B57 and \U0001F600!",
          "don't \u0120 \u00E9\u0301", "\u202Eleft\u2028\x7F\x01"}) {
      const std::vector<int32_t> ids = tokenizer.encode_ids(text, false);
      EXPECT_EQ(text_of(shown_tokens(tokenizer, text)), tokenizer.decode(ids)) << name << ": " << text;
    }
  }
}

TEST(ShownTokens, OfOtherTokenizersAreAsTheyAre) {
  for (const char* name : {"hf_metaspace.json", "hf_word_level.json", "hf_byte_fallback.json"}) {
    const Tokenizer tokenizer = tokenizer_of(name);
    for (int32_t id = 0; id < tokenizer.size(); ++id) EXPECT_EQ(tokenizer.shown(id), tokenizer.token_of(id));
  }
}

// Also where tokens are texts: a file may name any.
TEST(ShownTokens, CannotTurnTheLineRound) {
  const std::string json =
      R"({"model": {"type": "WordLevel", "unk_token": "<unk>", "vocab": {"<unk>": 0, "a\u202eb": 1, "\u0007": 2,
      "caf\u00e9": 3}}, "pre_tokenizer": {"type": "WhitespaceSplit"}})";
  const Tokenizer tokenizer = Tokenizer::from_json(json, "file");
  EXPECT_EQ(tokenizer.shown(1), "a\\u202eb");
  EXPECT_EQ(tokenizer.shown(2), "\\u0007");
  EXPECT_EQ(tokenizer.shown(3), "caf\u00e9");
  EXPECT_EQ(tokenizer.token_of(1), "a\u202eb");
}

TEST(Decode, RefusesAnIdThatNoTokenHas) {
  const Tokenizer tokenizer = tokenizer_of("hf_byte_level.json");
  const int32_t size = tokenizer.size();
  for (const int32_t id : {-1, size, 10'000'000}) {
    try {
      tokenizer.decode(std::vector<int32_t>{0, id});
      ADD_FAILURE() << id;
    } catch (const UsageError& error) {
      EXPECT_EQ(std::string(error.what()),
                "token id " + std::to_string(id) + ": expected 0 to " + std::to_string(size - 1));
    }
    EXPECT_EQ(tokenizer.decode_known(std::vector<int32_t>{5, id, 6}),
              tokenizer.decode(std::vector<int32_t>{5, 6}));
  }
}

}  // namespace
}  // namespace mh
