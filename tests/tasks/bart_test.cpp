// Texts and a folder of BART with its tokenizer against transformers (tests/oracles/translator_goldens.py).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "multihead/base/file.h"
#include "multihead/evaluate/score.h"
#include "multihead/folders/model_folder.h"
#include "multihead/io/safetensors.h"
#include "multihead/models/encoder_decoder.h"
#include "multihead/tasks/model_text.h"
#include "multihead/tasks/translate_text.h"
#include "tests/support/places.h"

namespace mh {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

const std::filesystem::path kBartGoldens = std::filesystem::path(goldens_folder()) / "bart";

struct BartTexts {
  BartTexts() {
    for (const auto& row : nlohmann::json::parse(read_file(kBartGoldens / "text.texts.json"))) {
      texts.push_back(row["text"]);
      translations.push_back(row["translation"]);
    }
    const SafetensorsFile file = SafetensorsFile::open(kBartGoldens / "text.golden.safetensors");
    const auto all = file.integers("text_ids");
    auto at = all.begin();
    for (const int64_t length : file.integers("text_ids_lengths")) {
      ids.emplace_back(at, at + length);
      at += length;
    }
  }
  ModelFolder folder = load_model_folder(kBartGoldens / "text");
  std::vector<std::string> texts, translations;
  std::vector<std::vector<int32_t>> ids;
};

TEST(BartText, TokensAreThoseOfItsTokenizer) {
  const BartTexts golden;
  EXPECT_EQ(ModelText(golden.folder, {}).sources(golden.texts, {.name = "source"}), golden.ids);
}

TEST(BartText, TranslationsAreThoseOfTransformers) {
  const BartTexts golden;
  EXPECT_EQ(golden.folder.generation_remark, "");
  TranslateOptions options;
  options.search.max_length = 24;
  options.search.early_stopping = EarlyStopping::kTrue;
  EXPECT_EQ(translate_text(golden.folder, golden.texts, options), golden.translations);
}

// <s> and </s> alone are no text.
TEST(BartText, AnEmptyLineIsTranslatedToAnEmptyLine) {
  const BartTexts golden;
  ModelText text(golden.folder, {});
  EXPECT_THAT(text.sources_to_translate({""}, {.name = "source"})[0], IsEmpty());
  EXPECT_THAT(text.sources({""}, {.name = "source"})[0], ElementsAre(0, 2));
  EXPECT_THAT(translate_text(golden.folder, {""}), ElementsAre(""));
}

TEST(BartText, ALongLineLosesItsEndButNotItsSpecialTokens) {
  const BartTexts golden;
  std::string longer;
  for (int i = 0; i < 40; ++i) longer += "the dog ";
  ModelText text(golden.folder, {});
  const std::vector<int32_t> ids = text.sources({longer}, {.name = "source"})[0];
  EXPECT_EQ(static_cast<int32_t>(ids.size()), golden.folder.model->facts().max_positions);
  EXPECT_EQ(ids.front(), 0);
  EXPECT_EQ(ids.back(), 2);
}

// A target is scored as BART reads it: <s>, the text, </s>.
TEST(BartText, ATextIsScoredWithItsSpecialTokens) {
  const BartTexts golden;
  const std::vector<int32_t>& whole = golden.ids[1];
  const std::vector<std::vector<int32_t>> source = {golden.ids[0]},
                                          target = {{whole.begin(), whole.end() - 1}};
  double expected = 0;
  const auto scores = score(golden.folder.translator(), source, target, {});
  for (const float one : scores[0]) expected += one;
  EXPECT_EQ(score_text(golden.folder, {golden.texts[0]}, {golden.texts[1]})[0], expected);
}

}  // namespace
}  // namespace mh
