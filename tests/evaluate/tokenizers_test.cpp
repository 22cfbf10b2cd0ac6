#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>

#include "multihead/base/file.h"
#include "multihead/evaluate/bleu_tokenizers.h"
#include "multihead/evaluate/moses_tokenizer.h"
#include "multihead/io/lines.h"
#include "nlohmann/json.hpp"
#include "tests/support/places.h"

namespace mh {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Words = std::vector<std::string>;

const std::filesystem::path kData = std::filesystem::path(goldens_folder()) / "evaluate";

std::vector<nlohmann::json> golden_rows() {
  std::vector<nlohmann::json> rows;
  for (const std::string& line : read_lines(kData / "tokens.jsonl"))
    rows.push_back(nlohmann::json::parse(line));
  EXPECT_GT(rows.size(), 200u);
  return rows;
}

TEST(BleuTokenizers, ThirteenAEqualsSacrebleu) {
  for (const auto& row : golden_rows()) {
    EXPECT_EQ(tokenize_13a(row["line"].get<std::string>()), row["13a"].get<Words>()) << row["line"];
  }
}

TEST(BleuTokenizers, InternationalEqualsSacrebleu) {
  for (const auto& row : golden_rows()) {
    const auto line = row["line"].get<std::string>();
    EXPECT_EQ(tokenize_intl(without_trailing_space(line)), row["intl"].get<Words>()) << row["line"];
  }
}

TEST(BleuTokenizers, LowerCaseEqualsPython) {
  for (const auto& row : golden_rows()) {
    EXPECT_EQ(lower_case_in_context(row["line"].get<std::string>()), row["lower"].get<std::string>());
  }
  EXPECT_EQ(lower_case_in_context("\u039f\u03a3'A \u03a3 A\u03a3\u0301"),
            "\u03bf\u03c3'a \u03c3 a\u03c2\u0301");
}

TEST(BleuTokenizers, NumbersAndHyphens) {
  EXPECT_THAT(tokenize_13a("It's 1,000.50, 20-year"),
              ElementsAre("It's", "1,000.50", ",", "20", "-", "year"));
  EXPECT_THAT(tokenize_intl("In 1999."), ElementsAre("In", "1999."));
  EXPECT_THAT(tokenize_intl("1999. x"), ElementsAre("1999", ".", "x"));
  EXPECT_THAT(tokenize_13a(" \u3000 "), IsEmpty());
  EXPECT_EQ(without_trailing_space("a b \u2003\t"), "a b");
}

TEST(MosesTokenizer, EqualsSacremosesOnHardLines) {
  int compared = 0;
  for (const auto& row : golden_rows()) {
    if (!row.contains("moses-en")) continue;
    ++compared;
    const auto line = row["line"].get<std::string>();
    EXPECT_EQ(tokenize_moses(line, MosesLanguage::kEnglish), row["moses-en"].get<Words>()) << row["line"];
    EXPECT_EQ(tokenize_moses(line, MosesLanguage::kGerman), row["moses-de"].get<Words>()) << row["line"];
  }
  EXPECT_GT(compared, 100);
}

TEST(MosesTokenizer, PeriodsAndApostrophes) {
  const auto en = MosesLanguage::kEnglish, de = MosesLanguage::kGerman;
  EXPECT_THAT(tokenize_moses("Mr. Smith's dog (No. 7) can't.", en),
              ElementsAre("Mr.", "Smith", "'s", "dog", "(", "No.", "7", ")", "can", "'t", "."));
  EXPECT_THAT(tokenize_moses("No. Really?", en), ElementsAre("No", ".", "Really", "?"));
  EXPECT_THAT(tokenize_moses("Am 3. Mai, z.B. um 5 Uhr...", de),
              ElementsAre("Am", "3.", "Mai", ",", "z.B.", "um", "5", "Uhr", "..."));
  EXPECT_THAT(tokenize_moses("Hans' Hut", de), ElementsAre("Hans", "'", "Hut"));
  EXPECT_THAT(tokenize_moses("well-known", en), ElementsAre("well-known"));
  EXPECT_THAT(tokenize_moses("", de), IsEmpty());
}

// Writes the words of real text for tests/oracles/bleu_goldens.py --moses; checks what must hold of any
// tokenizer.
TEST(SlowMosesTokenizer, KeepsEveryCharacterOfRealText) {
  const char* data = std::getenv("MULTIHEAD_DATA");
  if (data == nullptr) GTEST_SKIP() << "set MULTIHEAD_DATA to the folder that holds multi30k";
  const auto written = std::filesystem::path(build_folder()) / "evaluate_written";
  std::filesystem::create_directories(written);
  for (const std::string name : {"test_2016_flickr.en", "test_2016_flickr.de", "train.de", "train.en"}) {
    const auto language = name.ends_with("de") ? MosesLanguage::kGerman : MosesLanguage::kEnglish;
    std::string all;
    for (const std::string& line : read_lines(std::filesystem::path(data) / "multi30k" / (name + ".gz"))) {
      std::string kept, wanted;
      bool first = true;
      for (const std::string& word : tokenize_moses(line, language)) {
        all += (first ? "" : " ") + word;
        kept += word;
        first = false;
      }
      for (const std::string& word : split_words(line)) wanted += word;
      EXPECT_EQ(kept, wanted);
      all += '\n';
    }
    write_file_atomically(written / name, all);
  }
}

}  // namespace
}  // namespace mh
