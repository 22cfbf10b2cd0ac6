// A tokenizer of another model is refused beside models of every family, and real folders are not.
#include "multihead/folders/tokenizer_fit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "multihead/base/file.h"
#include "multihead/models/encoder_decoder.h"
#include "multihead/models/translator_shape.h"
#include "multihead/text/tokenizer_parts.h"
#include "tests/folders/families/damaged_golden.h"
#include "tests/folders/folder_case.h"

namespace mh {
namespace {

using nlohmann::json;
using testing::IsEmpty;
using testing::SizeIs;

/// A tokenizer of `size` words, the first of them as given.
Tokenizer words(int32_t size, const std::vector<std::string>& first = {"[PAD]", "[UNK]", "[CLS]", "[SEP]"}) {
  TokenizerParts parts;
  parts.model.kind = TokenModel::Kind::kWordLevel;
  parts.model.unknown_token = "[UNK]";
  for (int32_t id = 0; id < size; ++id) {
    const auto i = static_cast<size_t>(id);
    parts.model.vocabulary.emplace_back(i < first.size() ? first[i] : "word" + std::to_string(id), id);
  }
  return Tokenizer(std::move(parts));
}

ModelFacts encoder(int32_t vocabulary) {
  return {.source_vocabulary = vocabulary};
}
ModelFacts causal(int32_t vocabulary) {
  return {.vocabulary = vocabulary};
}
std::vector<std::string> sizes(int32_t tokens, const ModelFacts& facts) {
  return tokenizer_mismatches(words(tokens), facts.vocabulary_read(), facts, "", "");
}

// Vocabularies rounded up to a multiple of 8 are common; a hole of any other size is another model's
// tokenizer.
TEST(TokenizerFit, AllowsAVocabularyThatWasRoundedUp) {
  for (const auto& facts : {encoder, causal}) {
    EXPECT_THAT(sizes(53, facts(53)), IsEmpty());
    EXPECT_THAT(sizes(53, facts(56)), IsEmpty());
    EXPECT_THAT(sizes(129, facts(256)), IsEmpty());
    EXPECT_THAT(sizes(128, facts(256)), SizeIs(1));
    EXPECT_THAT(sizes(53, facts(57)), SizeIs(1));
    EXPECT_THAT(sizes(53, facts(52)), SizeIs(1));
    EXPECT_THAT(sizes(53, facts(48)), SizeIs(1));
    EXPECT_THAT(sizes(9800, facts(10000)), IsEmpty());
    EXPECT_THAT(sizes(9799, facts(10000)), SizeIs(1));
    EXPECT_THAT(sizes(9800, facts(9999)), SizeIs(1));
  }
  // Phi-2, Qwen 2.5 and Pythia of 12 billion parameters.
  for (const auto& [tokens, vocabulary] : {std::pair{50295, 51200}, {151665, 151936}, {50277, 50688}})
    EXPECT_TRUE(is_rounded_up(tokens, vocabulary));
}

// Multilingual MiniLM has 35 rows of 250,037 that no token uses. Who predicts tokens needs the text of each.
TEST(TokenizerFit, AnEncoderMayHaveAThousandthMore) {
  EXPECT_THAT(sizes(2003, encoder(2005)), IsEmpty());
  EXPECT_THAT(sizes(2003, encoder(2006)), SizeIs(1));
  EXPECT_THAT(sizes(2003, encoder(2001)), SizeIs(1));
  EXPECT_THAT(sizes(2003, causal(2005)), SizeIs(1));
  EXPECT_THAT(sizes(997, encoder(998)), SizeIs(1));  // a thousandth of it is less than one
}

TEST(TokenizerFit, EveryFamilyOfEncodersRefusesAnotherSize) {
  for (const auto& [family, name, vocabulary] : {std::tuple{"bert", "encoder", 43},
                                                 {"bert", "masked", 53},
                                                 {"roberta", "encoder", 43},
                                                 {"roberta", "xlm", 47},
                                                 {"distilbert", "masked", 53}}) {
    SCOPED_TRACE(std::string(family) + "/" + name);
    const test::DamagedGolden golden(family, name);
    for (const int size : {5, vocabulary - 1, vocabulary + 1}) {
      write_file_atomically(golden.folder / "tokenizer.json", words(size).to_json());
      golden.expect_error("tokenizer.json does not match the model: it has " + std::to_string(size) +
                          " tokens, the model " + std::to_string(vocabulary) +
                          "; put the tokenizer there that the model was trained with");
    }
    write_file_atomically(golden.folder / "tokenizer.json", words(vocabulary).to_json());
    EXPECT_NO_THROW(load_model_folder(golden.folder));
  }
}

TEST(TokenizerFit, AnEncodersSpecialTokensMustBeThere) {
  const test::DamagedGolden golden("bert", "encoder");
  const auto tokens = [&](const Tokenizer& tokenizer, const json& names) {
    write_file_atomically(golden.folder / "tokenizer.json", tokenizer.to_json());
    write_file_atomically(golden.folder / "tokenizer_config.json", names.dump());
  };
  const json names{{"cls_token", "[CLS]"}, {"sep_token", {{"content", "[SEP]"}}}, {"unk_token", "[UNK]"}};
  tokens(words(43), names);
  EXPECT_NO_THROW(load_model_folder(golden.folder));
  tokens(words(43, {"[PAD]", "[UNK]"}), names);
  golden.expect_error("it has no opening token '[CLS]'; it has no closing token '[SEP]'; put the tokenizer");
  tokens(words(43, {"[PAD]", "[UNK]", "<s>", "[SEP]"}), names);
  golden.expect_error("it has no opening token '[CLS]'; put the tokenizer");
  tokens(words(43), {{"unk_token", "<unk>"}});
  golden.expect_error("it has no unknown token '<unk>'");
  tokens(words(43), {{"cls_token", 7}});
  golden.expect_error("tokenizer_config.json: cls_token: expected a token's text");
  // What the file does not name, or names for work that is not done here, need not be there: nothing is padded, and
  // only `fill` asks for a mask.
  tokens(words(43, {"[UNK]"}), json::object());
  EXPECT_NO_THROW(load_model_folder(golden.folder));
  tokens(words(43), {{"pad_token", "<pad>"}, {"mask_token", "<mask>"}, {"eos_token", "<eos>"}});
  EXPECT_NO_THROW(load_model_folder(golden.folder));
}

TEST(TokenizerFit, SpecialTokensOfATranslatorHaveItsIds) {
  const Tokenizer tokenizer = test::small_tokenizer(53);
  TranslatorShape swapped = test::folder_shape(53);
  std::swap(swapped.eos_id, swapped.pad_id);
  EXPECT_THAT(tokenizer_mismatches(tokenizer, 53, EncoderDecoder(swapped.config()).facts()),
              testing::ElementsAre("its end token \"</s>\" has id 0, the model's has 2",
                                   "its pad token \"<pad>\" has id 2, the model's has 0"));
  EXPECT_THAT(tokenizer_mismatches(tokenizer, 53, EncoderDecoder(test::folder_shape(53).config()).facts(),
                                   "[EOS]", "[PAD]"),
              testing::ElementsAre("it has no end token \"[EOS]\"", "it has no pad token \"[PAD]\""));
}

}  // namespace
}  // namespace mh
