// What a page's texts say after each layer: what heads_lens() says of them.
#include "multihead/heads/reports/page/page_lens.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "multihead/folders/scored_model.h"
#include "multihead/heads/lens/heads_lens.h"
#include "multihead/heads/reports/page/page_run.h"
#include "multihead/heads/sites/site_values.h"
#include "tests/heads/attribution/attribution_families.h"
#include "tests/heads/reports/read_page.h"

namespace mh {
namespace {

using nlohmann::json;
using testing::HasSubstr;

const std::vector<PageText> kTexts = {{"the small dog sees a cat .", "der kleine Hund sieht eine Katze ."},
                                      {"a man reads the old book .", "ein Mann liest das alte Buch ."}};

void expect_lens(const json& shown, const LensReport& lens) {
  ASSERT_EQ(shown["positions"].size(), lens.positions.size());
  ASSERT_EQ(shown["values"].size(), lens.readings.size());
  for (size_t i = 0; i < lens.readings.size(); ++i) {
    const json& value = shown["values"][i];
    const LensReading& reading = lens.readings[i];
    EXPECT_EQ(value["site"], lens.places[i / lens.positions.size()].site);
    EXPECT_EQ(value["predicted"]["rank"], reading.predicted->rank);
    EXPECT_EQ(value["best"][0]["token"], reading.best[0].token);
    EXPECT_NEAR(value["best"][0]["probability"].get<double>(), reading.best[0].score, 5e-4);
    EXPECT_FALSE(value.contains("divergence"));
  }
}

TEST(PageLens, OfATranslationIsWhatTheVerbSays) {
  const ScoredModel model = load_scored_model("demo");
  HeadsPage page({.head = "encoder.0.self_attention.0"});
  page.add_run({.name = "demo",
                .folder = &model.folder(),
                .evidence = {.stats = R"({"heads": []})"},
                .lenses = page_lenses(model, kTexts, "demo", {}, nullptr)},
               kTexts);
  const json run = read_page(page.html()).header["runs"][0];
  for (size_t t = 0; t < kTexts.size(); ++t)
    expect_lens(run["texts"][t]["lens"],
                heads_lens(model.folder(), kTexts[t].source, {.target = kTexts[t].target}));
}

TEST(PageLens, OfChangedHeadsIsThatOfTheChangedModel) {
  const ScoredModel model = load_scored_model("demo");
  SiteValues muted;
  muted.mute("decoder.1.cross_attention.*");
  const PageRun run = page_run(model, kTexts, {.name = "demo", .model = "demo", .sites = &muted});
  const LensReport changed =
      heads_lens(model.folder(), kTexts[1].source, {.target = kTexts[1].target, .sites = &muted});
  expect_lens(json::parse(run.lenses[1]), changed);
  const LensReport whole = heads_lens(model.folder(), kTexts[1].source, {.target = kTexts[1].target});
  EXPECT_NE(changed.readings.back().best[0].score, whole.readings.back().best[0].score);
  EXPECT_THAT(run.contributions[0], HasSubstr("`multihead heads contributions` takes the same changes"));
}

// The vector of a text is compared with that of the next one, of the last with that of the first.
TEST(PageLens, OfVectorsIsTheirCosines) {
  const ScoredModel model(test::attribution_sentences());
  const std::vector<PageText> texts = {{"two dogs run in the park"}, {"a cat sees the small dogs"}};
  const std::vector<std::string> found = page_lenses(model, texts, "model", {}, nullptr);
  const json shown = json::parse(found[1]);
  const LensReport lens = heads_lens(model.sentences(), texts[1].source, texts[0].source);
  EXPECT_EQ(shown["second"], texts[0].source);
  ASSERT_EQ(shown["values"].size(), lens.cosines.size());
  for (size_t i = 0; i < lens.cosines.size(); ++i) {
    EXPECT_NEAR(shown["values"][i]["own"].get<double>(), lens.cosines[i].own, 5e-4);
    EXPECT_NEAR(shown["values"][i]["second"].get<double>(), *lens.cosines[i].second, 5e-4);
  }
  EXPECT_FALSE(json::parse(page_lenses(model, {texts[0]}, "model", {}, nullptr)[0]).contains("second"));
}

TEST(PageLens, OfALongTextIsLeftToTheVerb) {
  const ScoredModel model = load_scored_model("demo");
  std::string text;
  for (int i = 0; i < 13; ++i) text += "a cat sees the dog ";
  const std::vector<std::string> found = page_lenses(model, {{text}, {"a cat runs ."}}, "demo", {}, nullptr);
  EXPECT_THAT(json::parse(found[0])["why"].get<std::string>(), HasSubstr("`multihead heads lens`"));
  EXPECT_TRUE(json::parse(found[1]).contains("values"));
}

}  // namespace
}  // namespace mh
