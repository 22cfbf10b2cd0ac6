#include "multihead/text/unicode.h"

#include <gmock/gmock.h>
#include <utf8proc.h>

#include <cstdlib>

#include "multihead/base/random.h"
#include "multihead/base/utf8.h"

namespace mh {
namespace {

std::string by_utf8proc(const std::string& text, utf8proc_option_t options) {
  utf8proc_uint8_t* bytes = nullptr;
  const auto size = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                 static_cast<utf8proc_ssize_t>(text.size()), &bytes,
                                 static_cast<utf8proc_option_t>(options | UTF8PROC_STABLE));
  std::string result(reinterpret_cast<char*>(bytes), static_cast<size_t>(size));
  std::free(bytes);
  return result;
}

TEST(Unicode, NormalFormsOfSingleCharacters) {
  for (char32_t c = 1; c < 0x30000; ++c) {
    if (c >= 0xD800 && c < 0xE000) continue;
    std::string text;
    append_utf8(text, c);
    if (is_left_whole(c)) {
      ASSERT_EQ(normal_form(text, NormalForm::kNfkd), text) << uint32_t(c);
      continue;
    }
    ASSERT_EQ(normal_form(text, NormalForm::kNfc), by_utf8proc(text, UTF8PROC_COMPOSE)) << uint32_t(c);
    ASSERT_EQ(normal_form(text, NormalForm::kNfd), by_utf8proc(text, UTF8PROC_DECOMPOSE)) << uint32_t(c);
    ASSERT_EQ(normal_form(text, NormalForm::kNfkc),
              by_utf8proc(text, static_cast<utf8proc_option_t>(UTF8PROC_COMPOSE | UTF8PROC_COMPAT)))
        << uint32_t(c);
  }
}

TEST(Unicode, NormalFormsOfRandomMixtures) {
  // Letters, marks of several classes, Hangul parts, ligatures, compatibility forms.
  const std::u32string pool =
      U"aeoqZ "
      U"\u00e4\u00df\u017f\u0301\u0308\u0323\u0307\u030a\u0328\u0345\u1e9b\u1100\u1161\u11a8\uac00\ufb01"
      U"\u00bd\u2460\u0915\u093c\u0958\u212b\u0344\u0f71\u0f72\u3099\u304b\uff76\uff9e\U0001d15e\U00011099"
      U"\U000110ba";
  Random random(7);
  for (int i = 0; i < 20'000; ++i) {
    std::string text;
    for (int n = 0; n < 11; ++n) append_utf8(text, pool[random.below(static_cast<uint32_t>(pool.size()))]);
    ASSERT_EQ(normal_form(text, NormalForm::kNfc), by_utf8proc(text, UTF8PROC_COMPOSE)) << text;
    ASSERT_EQ(normal_form(text, NormalForm::kNfkd),
              by_utf8proc(text, static_cast<utf8proc_option_t>(UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT)))
        << text;
    ASSERT_EQ(normal_form(text, NormalForm::kNfkc),
              by_utf8proc(text, static_cast<utf8proc_option_t>(UTF8PROC_COMPOSE | UTF8PROC_COMPAT)))
        << text;
  }
}

TEST(Unicode, LowerCaseHasNoContext) {
  EXPECT_EQ(lower_case("GROẞ ÄÖÜ ÉÑ"), "groß äöü éñ");
  EXPECT_EQ(lower_case("ΟΔΟΣ"), "οδοσ");  // not ς
  EXPECT_EQ(lower_case("İI"), "i\u0307i");
  EXPECT_EQ(lower_case("Ǆ\U00010400"), "ǆ\U00010428");
}

TEST(Unicode, EveryCharacterGoesToUtf8AndBack) {
  for (char32_t c = 0; c <= 0x10FFFF; c += c < 0x3000 ? 1 : 37) {
    if (c >= 0xD800 && c < 0xE000) continue;
    std::string text;
    append_utf8(text, c);
    ASSERT_EQ(first_invalid_utf8(text), std::string_view::npos);
    size_t at = 0;
    ASSERT_EQ(next_character(text, at), c);
    ASSERT_EQ(at, text.size());
    ASSERT_EQ(utf8_length(text[0]), text.size());
  }
}

TEST(Unicode, BrokenPartsBecomeReplacementCharacters) {
  EXPECT_EQ(to_valid_utf8("ok"), "ok");
  EXPECT_EQ(to_valid_utf8("a\xFFz"), "a\uFFFDz");
  EXPECT_EQ(to_valid_utf8("\xE2\x82"), "\uFFFD");                      // one cut character
  EXPECT_EQ(to_valid_utf8("\xE2\x82z\xF0\x9F\x98"), "\uFFFDz\uFFFD");  // maximal parts
  EXPECT_EQ(to_valid_utf8("\xC0\xAF"), "\uFFFD\uFFFD");                // overlong: each byte is broken
  EXPECT_EQ(to_valid_utf8("\xED\xA0\x80"), "\uFFFD\uFFFD\uFFFD");      // a surrogate
}

TEST(Unicode, Classes) {
  EXPECT_TRUE(is_whitespace(0xA0) && is_whitespace(0x3000) && is_whitespace('\v') && is_whitespace(0x85));
  EXPECT_FALSE(is_whitespace(0x200B) || is_whitespace(0xFEFF) || is_whitespace('a'));
  EXPECT_TRUE(is_word('_') && is_word(U'ß') && is_word(0x301) && is_word(0x200D) && is_word(U'Ⓐ') &&
              is_word(U'٣'));
  EXPECT_FALSE(is_word('-') || is_word(U'½') || is_word(U'①') || is_word(U'€'));
  EXPECT_TRUE(is_punctuation(U'„') && is_punctuation('!') && is_punctuation('_'));
  EXPECT_FALSE(is_punctuation('$') || is_punctuation('a'));
  EXPECT_TRUE(is_symbol('$') && is_symbol(U'▁') && is_number(U'Ⅷ') && is_letter(U'漢') && is_mark(0x903));
}

}  // namespace
}  // namespace mh
