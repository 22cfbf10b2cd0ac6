// Texts and a folder of T5 with its tokenizer against transformers (tests/oracles/t5_goldens.py).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/base/file.h"
#include "multihead/folders/model_folder.h"
#include "multihead/io/safetensors.h"
#include "multihead/tasks/model_text.h"
#include "multihead/tasks/translate_text.h"
#include "tests/folders/families/golden_model.h"
#include "tests/support/places.h"

namespace mh {
namespace {

using testing::ElementsAre;

const std::filesystem::path kT5Goldens = std::filesystem::path(goldens_folder()) / "t5";

struct T5Texts {
  T5Texts() {
    for (const auto& row : nlohmann::json::parse(read_file(kT5Goldens / "text.texts.json"))) {
      texts.push_back(row["text"]);
      translations.push_back(row["translation"]);
    }
  }
  ModelFolder folder = load_model_folder(kT5Goldens / "text");
  std::vector<std::string> texts, translations;
};

// Sentinels are tokens of texts, spaces beside each other are one, and what no piece spells is unknown.
TEST(T5Text, TokensAreThoseOfItsTokenizer) {
  const T5Texts golden;
  const SafetensorsFile file = SafetensorsFile::open(kT5Goldens / "text.golden.safetensors");
  EXPECT_EQ(golden.folder.remark(), "");
  EXPECT_EQ(ModelText(golden.folder).sources(golden.texts, {.name = "source"}),
            test::golden_lists(file, "text_ids", "text_ids_lengths"));
}

TEST(T5Text, TranslationsAreThoseOfTransformers) {
  const T5Texts golden;
  TranslateOptions options;
  options.search.max_length = 24;
  options.search.early_stopping = EarlyStopping::kTrue;
  EXPECT_EQ(translate_text(golden.folder, golden.texts, options), golden.translations);
}

TEST(T5Text, APrefixComesBeforeEachTextThatIsNotEmpty) {
  const T5Texts golden;
  const std::string& text = golden.texts[0];
  ASSERT_GT(text.size(), 4u);
  ModelText whole(golden.folder), behind(golden.folder, {.prefix = "ab "});
  EXPECT_EQ(behind.sources({text, "", " "}, {.name = "source"}),
            whole.sources({"ab " + text, "", " "}, {.name = "source"}));
  EXPECT_EQ(behind.targets({text}, {.name = "target"}), whole.targets({text}, {.name = "target"}));
  TranslateOptions options;
  options.search.max_length = 24;
  const std::vector<std::string> by_hand = translate_text(golden.folder, {"ab " + text, ""}, options);
  options.source_prefix = "ab ";
  EXPECT_EQ(translate_text(golden.folder, {text, ""}, options), by_hand);
}

TEST(T5Text, APrefixThatLeavesNoRoomIsRefused) {
  const T5Texts golden;
  std::string longest;
  for (int i = 0; i < 600; ++i) longest += "a b ";
  EXPECT_THAT([&] { ModelText(golden.folder, {.prefix = longest}); },
              testing::ThrowsMessage<UsageError>(testing::HasSubstr("leaves no room for a text")));
  EXPECT_THAT([&] { ModelText(golden.folder, {.form = LineForm::kTokenIds, .prefix = "a"}); },
              testing::ThrowsMessage<UsageError>(testing::HasSubstr("goes before texts")));
}

TEST(T5Text, AnEmptyLineIsTranslatedToAnEmptyLine) {
  EXPECT_THAT(translate_text(T5Texts().folder, {""}), ElementsAre(""));
}

}  // namespace
}  // namespace mh
