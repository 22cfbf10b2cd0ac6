// What heads and tokens count for in the data of a page: as the verbs say it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/folders/scored_model.h"
#include "multihead/heads/attribution/heads_attribution.h"
#include "multihead/heads/importance/heads_importance.h"
#include "multihead/heads/reports/page/heads_page.h"
#include "multihead/heads/reports/page/page_attribution.h"
#include "multihead/heads/reports/page/page_texts.h"
#include "tests/heads/reports/read_page.h"
#include "tests/support/places.h"

namespace mh {
namespace {

using nlohmann::json;
using testing::HasSubstr;

PageEvidence importance_of_page(const ScoredModel& model, const std::vector<PageText>& texts) {
  TextCorpus corpus(corpus_text(texts)), own(corpus_text(texts));
  PageEvidence evidence{.stats = R"({"heads": []})"};
  add_importance(model, corpus, own, {.model = "model"}, evidence);
  return evidence;
}

json run_of(const ScoredModel& model, const std::vector<PageText>& texts) {
  const Model::Attention first = model.folder().model->attentions().front();
  HeadsPage page({.head = first.name + ".0"});
  page.add_run({.name = "model",
                .folder = &model.folder(),
                .evidence = importance_of_page(model, texts),
                .attributions = page_attributions(model, texts, "model", {})},
               texts);
  return read_page(page.html()).header["runs"][0];
}

std::vector<std::string> methods_of(const json& attribution) {
  std::vector<std::string> names;
  for (const auto& [name, score] : attribution["tokens"][0]["scores"].items()) names.push_back(name);
  return names;
}

TEST(PageImportance, SaysWhatHeadsOfATranslatorCountFor) {
  const ScoredModel model = load_scored_model("demo");
  const std::vector<PageText> texts = {{"the small dog sees a cat ."}, {"a man reads the old book ."}};
  const json evidence = run_of(model, texts)["evidence"];
  TextCorpus corpus(corpus_text(texts));
  const ImportanceReport ablation =
      heads_importance(model, corpus, {.measure = ImportanceMeasure::kAblation});
  const json& heads = evidence["ablation"]["heads"];
  EXPECT_EQ(evidence["ablation"]["sentences"], 2);
  EXPECT_EQ(evidence["ablation"]["measure"], "ablation");
  ASSERT_EQ(heads.size(), ablation.heads.size());
  for (size_t i = 0; i < heads.size(); ++i)
    EXPECT_NEAR(heads[i]["importance"].get<double>(), ablation.heads[i].importance.mean, 1e-9);
  EXPECT_EQ(evidence["importance"]["measure"], "gradient");
  EXPECT_EQ(evidence["importance"]["heads"].size(), heads.size());
}

TEST(PageImportance, SaysWhatTokensCountFor) {
  const ScoredModel model = load_scored_model("demo");
  const std::string text = "the small dog sees a cat .", german = "der kleine Hund sieht eine Katze .";
  const json attribution = run_of(model, {{text, german}})["texts"][0]["attribution"];
  const AttributionReport found = heads_attribution(model.folder(), text, {.target = german});
  EXPECT_EQ(attribution["token"], found.explained);
  EXPECT_NEAR(attribution["score"].get<double>(), found.score, 1e-9);
  EXPECT_EQ(methods_of(attribution).size(), kAttributionMethodNames.size());
  ASSERT_EQ(attribution["tokens"].size(), found.tokens.size());
  for (size_t i = 0; i < found.tokens.size(); ++i)
    EXPECT_NEAR(attribution["tokens"][i]["scores"]["rollout"].get<double>(),
                found.of(AttributionMethod::kRollout)[i], 1e-9);
}

TEST(PageImportance, LeavesOutWhatTakesManyRunsOfLongTexts) {
  const ScoredModel model = load_scored_model("demo");
  std::string text;
  for (int i = 0; i < 11; ++i) text += "a cat sees the dog ";
  const json run = run_of(model, {{text + "."}, {"a cat runs ."}});
  EXPECT_EQ(methods_of(run["texts"][0]["attribution"]).size(), 5u);
  EXPECT_EQ(methods_of(run["texts"][1]["attribution"]).size(), kAttributionMethodNames.size());
}

TEST(PageImportance, NeedsAnAttributionForEachText) {
  const ScoredModel model = load_scored_model("demo");
  const std::vector<PageText> texts = {{"a cat runs ."}, {"a dog runs ."}};
  HeadsPage page({.head = "encoder.0.self_attention.0"});
  EXPECT_THAT(
      [&] {
        page.add_run({.name = "model",
                      .folder = &model.folder(),
                      .evidence = {.stats = R"({"heads": []})"},
                      .attributions = none_of_each_text({texts[0]}, "why")},
                     texts);
      },
      testing::ThrowsMessage<FormatError>(HasSubstr("1 attributions for 2 texts")));
}

// A page without attributions has no tab for them.
TEST(PageImportance, OfOneVectorHasNoAttribution) {
  const ScoredModel model =
      load_scored_model(std::filesystem::path(goldens_folder()) / "sentences" / "modes");
  EXPECT_TRUE(page_attributions(model, {{"two dogs run"}}, "model", {}).empty());
  EXPECT_EQ(page_attributions(model, {{"two dogs run"}, {"a cat"}}, "model", {}).size(), 2u);
}

TEST(SlowPageImportance, OfVectorsNeedsTwoTexts) {
  const char* models = std::getenv("MULTIHEAD_MODELS");
  if (models == nullptr) GTEST_SKIP() << "set MULTIHEAD_MODELS to the folder that scripts/models makes";
  const ScoredModel model = load_scored_model(std::filesystem::path(models) / "minilm");
  const json one = run_of(model, {{"Two dogs run."}});
  EXPECT_TRUE(one["texts"][0]["attribution"].is_null());
  EXPECT_TRUE(one["evidence"]["importance"].is_null());
  EXPECT_EQ(one["evidence"]["ablation"]["heads"].size(), 72u);
  const json two = run_of(model, {{"Two dogs run."}, {"A pair of dogs is running."}});
  EXPECT_EQ(two["texts"][1]["attribution"]["second"], "Two dogs run.");
  EXPECT_EQ(two["evidence"]["importance"]["heads"].size(), 72u);
}

}  // namespace
}  // namespace mh
