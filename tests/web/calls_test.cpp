#include "web/calls/calls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <vector>

#include "multihead/heads/importance/heads_importance.h"
#include "multihead/heads/sites/observe_text.h"
#include "multihead/tasks/translate_text.h"

namespace mh {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

const std::vector<std::string> kTexts = {"the small dog sees a cat .", "two men see the old house ."};
constexpr const char* kHead = "decoder.0.cross_attention.2";

class WebCalls : public ::testing::Test {
 protected:
  json answer(const json& request) { return json::parse(models_.call(request.dump())); }
  /// Of the model that comes with the library.
  json demo(const std::string& call, const json& given) {
    if (model_ == 0) model_ = answer({{"call", "open"}, {"given", {{"path", "demo"}}}}).at("model");
    return answer({{"call", call}, {"model", model_}, {"given", given}});
  }
  std::string error(const json& request) { return answer(request).value("error", ""); }
  std::string error(const std::string& call, const json& given) {
    return demo(call, given).value("error", "");
  }

  web::Models models_;
  int model_ = 0;
  ModelFolder folder_ = load_model_folder("demo");
};

TEST_F(WebCalls, SaysWhatAModelIs) {
  const json about = demo("about", json::object());
  EXPECT_EQ(about["kind"], "translator");
  EXPECT_EQ(about["parameters"], folder_.model->parameter_count());
  EXPECT_EQ(about["attentions"].size(), folder_.model->attentions().size());
}

TEST_F(WebCalls, TranslatesAsTheLibraryDoes) {
  const json found = demo("translate", {{"texts", kTexts}});
  const std::vector<std::string> wanted = translate_text(folder_, kTexts);
  for (size_t i = 0; i < kTexts.size(); ++i) EXPECT_EQ(found["translations"][i][0]["text"], wanted[i]);
  EXPECT_TRUE(found["remarks"].empty());
  EXPECT_THAT(demo("translate", {{"texts", {"the zebra eats"}}})["remarks"].dump(),
              HasSubstr("e.g. 'zebra'"));
}

TEST_F(WebCalls, ChangesHeadsAsSiteValuesDo) {
  SiteValues changed;
  changed.mute("decoder.*.cross_attention.2");
  changed.set_gate("encoder.1.self_attention.0", 0.25f);
  changed.replace_weights("encoder.0.self_attention.1", WeightRule::kUniform);
  const json changes = {{"mute", {"decoder.*.cross_attention.2"}},
                        {"gate", {{{"heads", "encoder.1.self_attention.0"}, {"by", 0.25}}}},
                        {"replace", {{{"heads", "encoder.0.self_attention.1"}, {"rule", "uniform"}}}}};
  const std::vector<std::string> targets = translate_text(folder_, kTexts);
  const json found = demo("score", {{"texts", kTexts}, {"targets", targets}, {"changes", changes}});
  const std::vector<double> wanted = score_text(folder_, kTexts, targets, {.sites = &changed}),
                            whole = score_text(folder_, kTexts, targets);
  for (size_t i = 0; i < kTexts.size(); ++i) {
    const auto tokens = found["log_probabilities"][i].get<std::vector<float>>();
    const double sum = std::accumulate(tokens.begin(), tokens.end(), 0.0);
    EXPECT_NEAR(sum, wanted[i], 1e-6);
    EXPECT_GT(whole[i] - sum, 1e-3);
  }
}

TEST_F(WebCalls, ShowsTheValuesAtSites) {
  const json found =
      demo("observe",
           {{"text", kTexts[0]},
            {"sites", {std::string("decoder.1.cross_attention.weights.2"), std::string("decoder.states")}}});
  const Observation seen = observe_text(folder_, kTexts[0]);
  const ConstMatrixView weights = seen.weights({"decoder.1.cross_attention", 2});
  const auto rows =
      found["values"]["decoder.1.cross_attention.weights.2"].get<std::vector<std::vector<float>>>();
  ASSERT_EQ(std::ssize(rows), weights.rows);
  for (int64_t i = 0; i < weights.rows; ++i) {
    ASSERT_EQ(std::ssize(rows[static_cast<size_t>(i)]), weights.cols);
    for (int64_t j = 0; j < weights.cols; ++j)
      EXPECT_FLOAT_EQ(rows[static_cast<size_t>(i)][static_cast<size_t>(j)], weights(i, j));
  }
  EXPECT_EQ(found["values"].size(), 2u);
  EXPECT_EQ(found["translation"], seen.translation);
}

TEST_F(WebCalls, LeavesEachHeadOut) {
  const json found = demo("importance", {{"texts", {kTexts[0]}}});
  const ScoredModel model{load_model_folder("demo")};
  TextCorpus corpus({.sources = {kTexts[0]}});
  const ImportanceReport report = heads_importance(model, corpus, {.measure = ImportanceMeasure::kAblation});
  ASSERT_EQ(found["heads"].size(), report.heads.size());
  for (size_t i = 0; i < report.heads.size(); ++i) {
    EXPECT_EQ(found["heads"][i]["head"], report.heads[i].name.name());
    EXPECT_NEAR(found["heads"][i]["importance"].get<double>(), report.heads[i].importance.mean, 1e-9);
  }
}

TEST_F(WebCalls, MakesThePageAnew) {
  const json plain = demo("page", {{"texts", kTexts}, {"run", {{"importance", false}}}}),
             muted = demo(
                 "page",
                 {{"texts", kTexts}, {"run", {{"importance", false}}}, {"changes", {{"mute", {kHead}}}}});
  EXPECT_GT(plain["data"].get<std::string>().size(), 1000u);
  EXPECT_TRUE(plain["data"] != muted["data"]);
}

TEST_F(WebCalls, CutsATextIntoTokens) {
  const json found = demo("tokens", {{"text", kTexts[1]}});
  EXPECT_EQ(found["ids"].get<std::vector<int32_t>>(), folder_.source_tokens().encode_ids(kTexts[1]));
}

TEST_F(WebCalls, SaysInALineWhatIsWrong) {
  EXPECT_THAT(error({{"call", "translate"}, {"model", 7}}), HasSubstr("no model 7 is open"));
  EXPECT_THAT(error({{"call", "sing"}}), HasSubstr("no call 'sing'"));
  EXPECT_THAT(error(json::array()), HasSubstr("no call ''"));
  EXPECT_THAT(error({{"call", "open"}, {"given", {{"path", "/nowhere"}}}}), HasSubstr("/nowhere"));
  EXPECT_THAT(json::parse(models_.call("{")).value("error", ""), HasSubstr("request"));
  EXPECT_THAT(error("translate", json::object()), HasSubstr("texts"));
  EXPECT_THAT(error("translate", {{"texts", kTexts}, {"beams", 2}}), HasSubstr("beams"));
  EXPECT_THAT(error("embed", {{"texts", kTexts}}), HasSubstr("sentence"));
  EXPECT_THAT(
      error("translate", {{"texts", kTexts}, {"changes", {{"mute", {"encoder.9.self_attention.0"}}}}}),
      HasSubstr("encoder.9.self_attention"));
  EXPECT_THAT(error("score", {{"texts", kTexts}, {"targets", {kTexts[0]}}}), HasSubstr("1"));
}

TEST_F(WebCalls, OpensAModelAtAPrecision) {
  const auto open = [](const char* precision) {
    return json{{"call", "open"}, {"given", {{"path", "demo"}, {"precision", precision}}}};
  };
  const int near = answer(open("near:float32")).at("model");
  const json asked = {{"texts", kTexts}};
  EXPECT_EQ(answer({{"call", "translate"}, {"model", near}, {"given", asked}}), demo("translate", asked));
  EXPECT_THAT(error(open("exact")), HasSubstr("expected same|near|fast, got exact"));
  EXPECT_THAT(error(open("")), HasSubstr("got nothing"));
}

TEST_F(WebCalls, AClosedModelIsGone) {
  demo("about", json::object());
  EXPECT_EQ(demo("close", json::object()), json::object());
  EXPECT_THAT(error("about", json::object()), HasSubstr("is open"));
}

}  // namespace
}  // namespace mh
