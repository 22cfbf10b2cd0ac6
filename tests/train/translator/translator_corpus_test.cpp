#include "multihead/train/translator/translator_corpus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "multihead/base/error.h"
#include "multihead/text/tokenizer_parts.h"

namespace mh {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

ParallelText some_text() {
  return {{"the dog sees the cat", "", "a cat", "the very long line about a dog and a cat and a dog", "dogs"},
          {"der Hund sieht die Katze", "", "eine Katze", "kurz", "Hunde"}};
}

TEST(TranslatorCorpus, LeavesOutLongPairsAndKeepsLineNumbers) {
  TranslatorSettings settings;
  settings.word_level = true;
  const TranslatorTokenizers tokenizers = make_tokenizers(settings, some_text());
  const EncodedText encoded = encode_text(some_text(), tokenizers, 6);
  EXPECT_THAT(encoded.left_out, ElementsAre(4));
  EXPECT_THAT(encoded.corpus.lines, ElementsAre(1, 2, 3, 5));
  ASSERT_EQ(encoded.corpus.tokens.size(), 4u);
  EXPECT_EQ(encoded.corpus.tokens.source[0].size(), 6u);
  EXPECT_THAT(encoded.corpus.tokens.target[1], ElementsAre(kEndId));
  EXPECT_EQ(tokenizers.target().decode(encoded.corpus.tokens.target[2]), "eine Katze");
  EXPECT_TRUE(encode_text(some_text(), tokenizers, 100).left_out.empty());
}

TEST(TranslatorCorpus, JointOrSeparateVocabularies) {
  TranslatorSettings settings;
  settings.word_level = true;
  const TranslatorTokenizers joint = make_tokenizers(settings, some_text());
  EXPECT_FALSE(joint.own_target.has_value());
  EXPECT_TRUE(joint.source.id_of("Hund").has_value());
  settings.separate_vocabularies = true;
  const TranslatorTokenizers separate = make_tokenizers(settings, some_text());
  ASSERT_TRUE(separate.own_target.has_value());
  EXPECT_FALSE(separate.source.id_of("Hund").has_value());
  EXPECT_TRUE(separate.target().id_of("Hund").has_value());
}

TEST(TranslatorCorpus, ATokenizerMustEndWhatItEncodes) {
  TranslatorSettings settings;
  const Tokenizer learned = make_tokenizers(settings, some_text()).source;
  EXPECT_EQ(special_ids(learned, "t.json").end, kEndId);
  EXPECT_EQ(special_ids(learned, "t.json").pad, kPadId);
  std::string json = learned.to_json();
  const auto refused = [&](const std::string& text) -> std::string {
    try {
      special_ids(Tokenizer::from_json(text, "t.json"), "t.json");
    } catch (const UsageError& error) {
      return error.what();
    }
    return "accepted";
  };
  std::string renamed = json;
  for (size_t at; (at = renamed.find("<pad>")) != std::string::npos;) renamed.replace(at, 5, "<PAD>");
  EXPECT_THAT(refused(renamed), HasSubstr("no <pad> token"));
  TokenizerParts parts;
  parts.model.kind = TokenModel::Kind::kWordLevel;
  parts.model.vocabulary = {{"</s>", 0}, {"<unk>", 1}, {"<pad>", 2}, {"dog", 3}};
  parts.model.unknown_token = "<unk>";
  EXPECT_THAT(refused(Tokenizer(parts).to_json()), HasSubstr("does not append </s>"));
}

}  // namespace
}  // namespace mh
