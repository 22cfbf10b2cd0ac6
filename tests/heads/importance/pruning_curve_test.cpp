// The score as heads are muted, beside whole passes with the same heads muted; its JSON.
#include "multihead/heads/importance/pruning_curve.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/heads/reports/importance_json.h"
#include "multihead/heads/reports/report_options.h"
#include "multihead/heads/sites/site_values.h"
#include "tests/heads/importance/scored_families.h"
#include "tests/heads/reports/json_page.h"

namespace mh {
namespace {

using testing::HasSubstr;

TEST(PruningCurve, ScoresOtherTextsWithHeadsMutedInOrder) {
  for (const ScoredFamily& family : scored_families()) {
    SCOPED_TRACE(family.name);
    const HeadsText text = lines_of_importance(family.texts.kind == ScoreKind::kTranslation);
    TextCorpus corpus(text);
    const PruningCurve curve = pruning_curve(family.model, corpus, {}, {.points = 3, .random_orders = 4});
    const std::vector<HeadName> heads = family.model.folder().model->heads_named(HeadPattern("*"));
    EXPECT_EQ(curve.importance.read.sentences, 3);
    EXPECT_EQ(curve.scored, 2);
    ASSERT_EQ(curve.order.size(), heads.size());
    EXPECT_EQ(curve.order.front(), curve.importance.heads.back().name);
    EXPECT_EQ(curve.order.back(), curve.importance.heads.front().name);
    EXPECT_EQ(curve.points.front().muted, 0);
    EXPECT_EQ(curve.points.front().loss.mean, 0);
    EXPECT_EQ(curve.points.back().muted, std::ssize(heads));
    // Texts 2 and 4 by themselves, with the same heads muted.
    const Tensor whole = vectors_of_family(family);
    for (const PruningPoint& point : curve.points) {
      SiteValues muted;
      for (int64_t i = 0; i < point.muted; ++i) muted.mute(named(curve.order[static_cast<size_t>(i)]));
      const std::vector<double> scores = scores_with(family, &muted, whole.view());
      double mean = 0;
      for (const size_t s : {1u, 3u})
        mean += scores[s] / std::max(1.0, static_cast<double>(family.texts.texts[s].tokens.size())) / 2;
      EXPECT_NEAR(point.score.mean, mean, 2e-5);
    }
    // With all heads muted every order is the same.
    EXPECT_NEAR(curve.points.back().random.mean, curve.points.back().loss.mean, 1e-5);
    EXPECT_NEAR(curve.points.back().random.half, 0, 1e-5);
  }
}

TEST(PruningCurve, WithinAttentionsEachLosesItsLeastFirst) {
  const auto families = scored_families();
  const HeadsText text = lines_of_importance(true);
  TextCorpus corpus(text);
  const PruningCurve curve = pruning_curve(families[0].model, corpus, {.within_attentions = true},
                                           {.points = 2, .random_orders = 0});
  for (size_t i = 0; i < curve.order.size(); ++i) {
    const auto head = std::ranges::find(curve.importance.heads, curve.order[i], &HeadImportance::name);
    EXPECT_EQ(head->rank, 3 - static_cast<int>(i / 6));
  }
  const HeadsText one{.sources = {"two dogs run"}, .targets = {"a park"}};
  TextCorpus short_corpus(one);
  EXPECT_THAT([&] { pruning_curve(families[0].model, short_corpus, {}); },
              testing::ThrowsMessage<UsageError>(HasSubstr("at least 2 lines")));
}

TEST(PruningCurve, JsonHasTheFieldsThatThePageDescribes) {
  const auto families = scored_families();
  const HeadsText text = lines_of_importance(true);
  TextCorpus corpus(text);
  const PruningCurve curve =
      pruning_curve(families[0].model, corpus, {.measure = ImportanceMeasure::kAblation}, {.points = 2});
  auto json = nlohmann::json::parse(with_options(importance_json(curve, "small"), "importance",
                                                 ImportanceSettings{.curve = true}, Precision::kSame));
  json["options"].clear();  // `multihead pages` writes their table
  EXPECT_EQ(json["score"], "translation");
  EXPECT_EQ(json["heads"][0]["importance"].get<double>(), curve.importance.heads[0].importance.mean);
  std::set<std::string> keys;
  collect_keys(json, keys);
  const std::set<std::string> described = names_on_the_page("The JSON of heads importance");
  for (const std::string& key : keys) EXPECT_THAT(described, testing::Contains(key));
  for (const std::string& name : described) {
    if (name.find_first_of(" -./():|") == std::string::npos) {
      EXPECT_THAT(keys, testing::Contains(name));
    }
  }
}

}  // namespace
}  // namespace mh
