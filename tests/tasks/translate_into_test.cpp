// Each of several texts in a language of its own is what it is alone; which tokens the languages give, language_codes_test.cpp says.
#include "multihead/tasks/translate_into.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/folders/language_codes.h"
#include "multihead/heads/sites/site_values.h"
#include "multihead/models/encoder_decoder.h"
#include "multihead/tasks/model_text.h"
#include "multihead/tasks/translate_text.h"
#include "tests/io/hostile.h"
#include "tests/support/places.h"

namespace mh {
namespace {

using testing::ElementsAre;

class TranslateInto : public testing::Test {
 protected:
  const ModelFolder folder =
      load_model_folder(std::filesystem::path(goldens_folder()) / "languages" / "nllb");
  const std::vector<std::string> texts = {"two dogs run in the park", "", "the small dog sees a cat.",
                                          "the dog", "two cats and a small dog"},
                                 targets = {"de", "ro", "zho_Hant", "ron_Latn", "deu"};
  const LanguagePair english = language_pair(folder, {"en"});
  const TranslateOptions options{.search = {.beam_size = 3, .n_best = 2, .max_length = 17},
                                 .languages = {"en"}};
  const std::vector<std::vector<int32_t>> sources =
      ModelText(folder, {.languages = english}).sources_to_translate(texts, {});

  /// Text i as the only one.
  std::vector<Hypothesis> alone(size_t i, Sites* sites = nullptr) const {
    TranslateOptions of_one = options;
    of_one.sites = sites;
    complete_search(folder, {.target = folder.languages->id_of(targets[i], "")}, of_one.search);
    return translate(folder.translator(), std::span(&sources[i], 1), of_one)[0];
  }
  static void expect_same(const std::vector<Hypothesis>& found, const std::vector<Hypothesis>& wanted) {
    ASSERT_EQ(found.size(), wanted.size());
    for (size_t n = 0; n < found.size(); ++n) {
      EXPECT_EQ(found[n].tokens, wanted[n].tokens);
      EXPECT_NEAR(found[n].log_probability, wanted[n].log_probability, 1e-4);
    }
  }
};

TEST_F(TranslateInto, GivesWhatEachGivesAlone) {
  Translator translator(folder.translator());
  const std::vector<int32_t> codes = target_codes(folder, targets, {});
  for (const int64_t tokens : {1, 13, 100'000}) {
    TranslateOptions in_batches = options;
    in_batches.max_batch_tokens = tokens;
    int64_t last = 0;
    in_batches.progress = [&](int64_t done) {
      EXPECT_GE(done, last);
      last = done;
    };
    const auto found = translate_into(folder, translator, sources, codes, in_batches);
    ASSERT_EQ(found.size(), texts.size());
    for (size_t i = 0; i < texts.size(); ++i) expect_same(found[i], alone(i));
    EXPECT_EQ(last, 4);  // the empty text is none
  }
  EXPECT_NE(alone(0)[0].tokens, alone(3)[0].tokens);
}

// What is put at a site goes by the number of the text in the whole list.
TEST_F(TranslateInto, NumbersTextsAsTheListDoes) {
  Translator translator(folder.translator());
  const std::vector<int32_t> codes = target_codes(folder, targets, {});
  const auto put = [](int32_t text) {
    SiteReplacement one{.site = "encoder.0.output", .sequence = text, .numbers = Tensor(1, 12)};
    for (int64_t c = 0; c < 12; ++c) one.numbers(0, c) = 2.5f - 0.7f * static_cast<float>(c % 5);
    return one;
  };
  for (const size_t edited : {2u, 3u, 4u}) {
    SiteValues of_list, of_one;
    of_list.replace(put(static_cast<int32_t>(edited)));
    of_one.replace(put(0));
    TranslateOptions changed = options;
    changed.sites = &of_list;
    const auto found = translate_into(folder, translator, sources, codes, changed);
    const std::vector<Hypothesis> wanted = alone(edited, &of_one);
    EXPECT_NE(wanted[0].log_probability, alone(edited)[0].log_probability);
    for (size_t i = 0; i < texts.size(); ++i) expect_same(found[i], i == edited ? wanted : alone(i));
  }
}

TEST_F(TranslateInto, SomeOfThemAreAsTheyAreAmongAll) {
  Translator translator(folder.translator());
  const std::vector<int32_t> codes = target_codes(folder, targets, {});
  SiteValues edited;
  edited.replace({.site = "encoder.0.output", .sequence = 3, .numbers = Tensor(1, 12)});
  TranslateOptions changed = options;
  changed.sites = &edited;
  const auto all = translate_into(folder, translator, sources, codes, changed);
  const auto some =
      translate_some(folder, translator, std::vector<int64_t>{4, 1, 3}, sources, codes, changed);
  ASSERT_EQ(some.size(), 3u);
  expect_same(some[0], all[4]);
  EXPECT_TRUE(some[1].empty());
  expect_same(some[2], all[3]);
  EXPECT_NE(some[2][0].log_probability, alone(3)[0].log_probability);
}

TEST_F(TranslateInto, IsWhatTranslateTextDoesWithSeveralTargets) {
  TranslateOptions several{.languages = {"en"}, .targets = targets};
  several.search.max_length = 17;
  const std::vector<std::string> found = translate_text(folder, texts, several);
  for (size_t i = 0; i < texts.size(); ++i) {
    TranslateOptions one{.languages = {"en", targets[i]}};
    one.search.max_length = 17;
    EXPECT_THAT(translate_text(folder, {texts[i]}, one), ElementsAre(found[i]));
  }
  several.targets = {"de", "ro"};
  test::expect_one_line_error([&] { translate_text(folder, texts, several); },
                              "expected a target language for each of 5 texts", "two");
  several.targets = {"de", "ro", "de", "xx", "de"};
  test::expect_one_line_error([&] { translate_text(folder, texts, several); },
                              "target language 4: 'xx' is no language of this model", "another");
}

TEST_F(TranslateInto, ReadsTheLanguagesBeforeTabs) {
  std::vector<std::string> lines = {"de\ttwo\tdogs", "", " \t ", "zho_Hant\t", "ro\t a"};
  const std::vector<int32_t> codes = take_target_column(folder, lines, {.name = "in"});
  EXPECT_THAT(lines, ElementsAre("two\tdogs", "", " \t ", "", " a"));
  EXPECT_EQ(codes[0], folder.languages->id_of("deu_Latn", ""));
  EXPECT_EQ(codes[4], folder.languages->id_of("ron_Latn", ""));
  for (const auto& [line, error] :
       {std::pair("two dogs", "in line 8: expected the language of the translation, a tab and the text"),
        std::pair("\ttwo dogs", "in line 8: '' is no language of this model"),
        std::pair("zh\ttwo dogs", "in line 8: 'zh' may be zho_Hans, zho_Hant; give one of these")}) {
    std::vector<std::string> wrong = {"de\ta", line}, again = wrong;
    test::expect_one_line_error([&] { take_target_column(folder, wrong, {.name = "in", .first = 7}); }, error,
                                line);
    EXPECT_THROW(take_target_column(folder, again, {}), FormatError);
  }
}

}  // namespace
}  // namespace mh
