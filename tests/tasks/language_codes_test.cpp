// Translators of many languages with their tokenizers against transformers (tests/oracles/language_goldens.py).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "multihead/base/file.h"
#include "multihead/folders/language_codes.h"
#include "multihead/folders/model_folder.h"
#include "multihead/folders/save_folder.h"
#include "multihead/io/safetensors.h"
#include "multihead/models/encoder_decoder.h"
#include "multihead/tasks/model_text.h"
#include "multihead/tasks/translate_text.h"
#include "tests/folders/families/golden_model.h"
#include "tests/folders/folder_case.h"
#include "tests/io/hostile.h"
#include "tests/support/places.h"
#include "tests/support/scratch_folder.h"

namespace mh {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using Ids = std::vector<std::vector<int32_t>>;

const std::filesystem::path kLanguages = std::filesystem::path(goldens_folder()) / "languages";

struct ManyLanguages {
  const char *name, *first, *second;  // languages of the texts
};

class Languages : public testing::TestWithParam<ManyLanguages> {
 protected:
  const std::string name = GetParam().name, first = GetParam().first, second = GetParam().second;
  ModelFolder folder = load_model_folder(kLanguages / name);
  SafetensorsFile golden = SafetensorsFile::open(kLanguages / (name + ".golden.safetensors"));
  std::vector<std::string> lines = json::parse(read_file(kLanguages / "lines.json"));

  Ids ids(const std::string& of) const {
    return test::golden_lists(golden, of + "_ids", of + "_ids_lengths");
  }
  bool starts_decoder() const { return folder.languages->starts_decoder; }
};

TEST_P(Languages, SourcesHaveTheTokensOfTransformers) {
  ASSERT_GE(lines.size(), 200U);
  EXPECT_EQ(folder.remark(), "");
  const auto longest = static_cast<size_t>(folder.model->facts().max_positions);
  for (const auto& [key, language] : {std::pair("first", first), std::pair("second", second)}) {
    ModelText text(folder, {.languages = language_pair(folder, {language})});
    const Ids found = text.sources(lines, {.name = "source"}), wanted = ids(key);
    ASSERT_EQ(found.size(), wanted.size());
    size_t whole = 0;
    for (size_t i = 0; i < found.size(); ++i) {
      if (wanted[i].size() > longest) {
        EXPECT_EQ(found[i].size(), longest) << lines[i];
        continue;
      }
      ++whole;
      EXPECT_EQ(found[i], wanted[i]) << lines[i];
    }
    EXPECT_GE(whole, 60U);
  }
}

// Of transformers' the decoder reads what stands before the end: in front of it the code, in whichever place the tokenizer has it.
TEST_P(Languages, TargetsBeginWithTheirCode) {
  const int32_t end = folder.model->facts().eos_id;
  const LanguagePair languages = language_pair(folder, {first, second});
  const Ids found = ModelText(folder, {.languages = languages}).targets(lines, {.name = "target"});
  Ids wanted = ids("target");
  const auto longest = static_cast<size_t>(folder.model->facts().max_positions);
  for (size_t i = 0; i < found.size(); ++i) {
    if (wanted[i].size() > longest) continue;
    std::vector<int32_t>& one = wanted[i];
    if (one.back() == *languages.target) {
      one.pop_back();
      if (!starts_decoder()) one.insert(one.begin(), *languages.target);
    }
    ASSERT_EQ(one.back(), end);
    one.pop_back();
    EXPECT_EQ(found[i], one) << lines[i];
  }
}

TEST_P(Languages, TranslationsIntoTwoLanguagesAreThoseOfTransformers) {
  const json texts = json::parse(read_file(kLanguages / (name + ".texts.json")));
  TranslateOptions options{.languages = {first}};
  options.search.max_length = 24;
  options.search.early_stopping = EarlyStopping::kTrue;
  for (const auto& [key, language] : {std::pair("into_second", second), std::pair("into_first", first)}) {
    if (starts_decoder() && language == first) continue;
    options.languages.target_language = language;
    EXPECT_EQ(translate_text(folder, texts["texts"], options), texts[key].get<std::vector<std::string>>())
        << key;
  }
  EXPECT_THAT(translate_text(folder, {""}, options), ElementsAre(""));
}

TEST_P(Languages, ALongLineLosesItsEndButNotItsCode) {
  std::string longer;
  for (int i = 0; i < 40; ++i) longer += "the dog ";
  const LanguagePair languages = language_pair(folder, {first, second});
  const std::vector<int32_t> found =
      ModelText(folder, {.languages = languages}).sources({longer}, {.name = "source"})[0];
  EXPECT_EQ(static_cast<int32_t>(found.size()), folder.model->facts().max_positions);
  const bool behind = folder.languages->place == CodePlace::kBehind;
  EXPECT_EQ(behind ? found.back() : found.front(), *languages.source);
  EXPECT_EQ(behind ? found[found.size() - 2] : found.back(), folder.model->facts().eos_id);
}

TEST_P(Languages, AreKeptInWhatIsSaved) {
  const test::ScratchFolder scratch;
  save_model_folder(scratch / "saved", folder);
  const ModelFolder again = load_model_folder(scratch / "saved");
  EXPECT_EQ(again.remark(), "");
  const auto sources = [&](const ModelFolder& of) {
    return ModelText(of, {.languages = language_pair(of, {second})}).sources(lines, {.name = "source"});
  };
  EXPECT_EQ(sources(again), sources(folder));
  EXPECT_EQ(again.languages->ids, folder.languages->ids);
}

INSTANTIATE_TEST_SUITE_P(Folders, Languages,
                         testing::Values(ManyLanguages{"mbart", "en_XX", "de_DE"},
                                         ManyLanguages{"mbart50", "en_XX", "gl_ES"},
                                         ManyLanguages{"nllb", "eng_Latn", "zho_Hant"},
                                         ManyLanguages{"nllb_legacy", "eng_Latn", "deu_Latn"},
                                         ManyLanguages{"m2m100", "en", "de"}),
                         [](const auto& of) { return std::string(of.param.name); });

// In texts they are tokens where special_tokens_map.json lists them, as in the folders that were published.
TEST(M2m100Codes, AreTokensInTextsWhereTheyAreListed) {
  const test::ScratchFolder scratch;
  const std::filesystem::path plain = scratch / "plain";
  std::filesystem::copy(kLanguages / "m2m100", plain, std::filesystem::copy_options::recursive);
  std::filesystem::remove(plain / "special_tokens_map.json");
  const json codes = json::parse(read_file(kLanguages / "m2m100.texts.json"))["codes"];
  const std::vector<std::string> texts = codes["of"];
  for (const auto& [path, key] : {std::pair(kLanguages / "m2m100", "listed"), std::pair(plain, "unlisted")}) {
    const ModelFolder folder = load_model_folder(path);
    EXPECT_EQ(folder.remark(), "");
    ModelText text(folder, {.languages = language_pair(folder, {"en"})});
    EXPECT_EQ(text.sources(texts, {.name = "source"}), codes[key].get<Ids>()) << key;
    EXPECT_EQ(folder.source_tokens().encode_ids(texts[0]), codes[key][0].get<std::vector<int32_t>>()) << key;
  }
}

TEST(M2m100Codes, AreThoseOfTheListThatIsNamed) {
  const test::ScratchFolder scratch;
  const std::filesystem::path path = scratch / "m2m100";
  std::filesystem::copy(kLanguages / "m2m100", path, std::filesystem::copy_options::recursive);
  const auto name_list = [&](const char* list) {
    test::edit_json(path / "tokenizer_config.json", [&](json& config) { config["language_codes"] = list; });
  };
  name_list("fairseq");
  test::expect_one_line_error(
      [&] { load_model_folder(path); },
      "tokenizer_config.json: language_codes: expected m2m100 or wmt21, got 'fairseq'", "no list");
  name_list("wmt21");
  const Tokenizer tokenizer = load_tokenizer(path);
  EXPECT_EQ(tokenizer.size(), load_tokenizer(kLanguages / "m2m100").size() - 92);
  EXPECT_EQ(tokenizer.id_of("__de__"), tokenizer.size() - 1);
  EXPECT_EQ(tokenizer.id_of("__af__"), std::nullopt);
}

TEST(LanguageNames, ArePerhapsTheirFirstPart) {
  const ModelFolder folder = load_model_folder(kLanguages / "nllb");
  const LanguageCodes& codes = *folder.languages;
  EXPECT_EQ(codes.id_of("deu", "x"), codes.id_of("deu_Latn", "x"));
  test::expect_one_line_error([&] { codes.id_of("zho", "a.en line 3"); },
                              "a.en line 3: 'zho' may be zho_Hans, zho_Hant; give one of these", "two");
  test::expect_one_line_error([&] { language_pair(folder, {"xx"}); },
                              "`source_language`: 'xx' is no language of this model, which has deu_Latn, "
                              "eng_Latn, ron_Latn, zho_Hans, zho_Hant",
                              "none");
}

TEST(LanguageNames, ArePerhapsOtherCodesOfIso639) {
  const ModelFolder nllb = load_model_folder(kLanguages / "nllb"),
                    mbart = load_model_folder(kLanguages / "mbart50");
  const LanguageCodes &scripts = *nllb.languages, &regions = *mbart.languages;
  EXPECT_EQ(scripts.id_of("de", "x"), scripts.id_of("deu_Latn", "x"));
  EXPECT_EQ(scripts.id_of("en_Latn", "x"), scripts.id_of("eng_Latn", "x"));
  EXPECT_EQ(scripts.id_of("zh_Hant", "x"), scripts.id_of("zho_Hant", "x"));
  EXPECT_EQ(regions.id_of("de", "x"), regions.id_of("de_DE", "x"));
  EXPECT_EQ(regions.id_of("deu", "x"), regions.id_of("de_DE", "x"));
  EXPECT_EQ(regions.id_of("pes", "x"), regions.id_of("fa_IR", "x"));
  EXPECT_EQ(regions.id_of("zho", "x"), regions.id_of("zh_CN", "x"));
  test::expect_one_line_error([&] { scripts.id_of("zh", "x"); },
                              "x: 'zh' may be zho_Hans, zho_Hant; give one of these", "two scripts");
  test::expect_one_line_error([&] { scripts.id_of("de_DE", "x"); }, "'de_DE' is no language", "no script");
  test::expect_one_line_error([&] { scripts.id_of("de_", "x"); }, "'de_' is no language", "nothing behind");
  test::expect_one_line_error([&] { regions.id_of("", "x"); }, "'' is no language", "nothing");
}

TEST(LanguageNames, OfManyAreCounted) {
  LanguageCodes codes;
  for (char a = 'a'; a <= 'z'; ++a) {
    for (const char* end : {"aa", "bb", "cc"}) codes.ids.emplace(a + std::string(end), a);
  }
  test::expect_one_line_error(
      [&] { codes.id_of("deu", "x"); },
      "x: 'deu' is no language of this model, which has 78 (multihead info lists them)", "many");
}

TEST(LanguageNames, AreNoneOfAModelWithoutCodes) {
  const ModelFolder folder = load_model_folder(std::filesystem::path(goldens_folder()) / "bart" / "text");
  EXPECT_EQ(folder.languages, nullptr);
  test::expect_one_line_error(
      [&] { translate_text(folder, {"the dog"}, {.languages = {.target_language = "de"}}); },
      "has no codes of languages among which one could choose; leave it out", "target");
}

TEST(LanguageNames, OfTheFolderCountWhereNoneAreGiven) {
  const test::ScratchFolder scratch;
  const std::filesystem::path path = scratch / "nllb";
  std::filesystem::copy(kLanguages / "nllb", path, std::filesystem::copy_options::recursive);
  const std::vector<std::string> texts = {"two dogs run in the park"};
  const auto wanted = translate_text(load_model_folder(path), texts, {.languages = {"eng", "ron"}});
  test::expect_one_line_error(
      [&] { translate_text(load_model_folder(path), texts); },
      "nothing says its target language: give `target_language`, or put tgt_lang into", "target");
  test::edit_json(path / "tokenizer_config.json", [](json& config) { config["tgt_lang"] = "ron_Latn"; });
  EXPECT_EQ(translate_text(load_model_folder(path), texts), wanted);
  // What generation_config.json forces counts before that.
  const ModelFolder folder = load_model_folder(path);
  const int32_t german = folder.languages->id_of("deu", "target");
  test::edit_json(path / "generation_config.json",
                  [&](json& config) { config["forced_bos_token_id"] = german; });
  EXPECT_EQ(load_model_folder(path).languages->usual.target, german);
  test::edit_json(path / "tokenizer_config.json", [](json& config) { config["src_lang"] = nullptr; });
  test::expect_one_line_error(
      [&] { translate_text(load_model_folder(path), texts); },
      "nothing says its source language: give `source_language`, or put src_lang into", "source");
}

TEST(LanguageNames, OfAnMbartIsThatOfItsStartToken) {
  const ModelFolder folder = load_model_folder(kLanguages / "mbart");
  EXPECT_EQ(folder.languages->usual.target, folder.languages->id_of("de", "target"));
  test::expect_one_line_error(
      [&] {
        language_pair(folder, {"en", "ro_RO"});
      },
      "writes de_DE alone, whose code is its decoder_start_token_id", "target");
}

// Ids have their codes themselves, behind the end of some.
TEST(LanguageNames, AreNotPutAroundTokenIds) {
  for (const char* name : {"mbart", "nllb"}) {
    const ModelFolder folder = load_model_folder(kLanguages / name);
    ModelText text(folder, {.form = LineForm::kTokenIds});
    EXPECT_THAT(text.sources({"5 7 2 9", "5 7"}, {.name = "source"}),
                ElementsAre(ElementsAre(5, 7, 2, 9), ElementsAre(5, 7, 2)));
  }
}

}  // namespace
}  // namespace mh
