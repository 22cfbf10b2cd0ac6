// A report about heads made again from its own options.
#include "multihead/heads/reports/report_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "multihead/base/error.h"
#include "multihead/heads/attribution/faithfulness.h"
#include "multihead/heads/measures/heads_where.h"
#include "multihead/heads/patching/heads_patch.h"
#include "multihead/heads/reports/importance_json.h"
#include "multihead/heads/retrieval/heads_retrieval.h"
#include "multihead/heads/steering/heads_steer.h"
#include "tests/heads/importance/scored_families.h"

namespace mh {
namespace {

using testing::HasSubstr;

TEST(ReportOptions, MakeTheReportAgain) {
  const auto families = scored_families();
  const HeadsText text = lines_of_importance(true);
  const auto report = [&](ImportanceSettings settings) {
    TextCorpus corpus(text);
    return with_options(
        importance_json(pruning_curve(families[0].model, corpus, settings.importance, settings.steps), "m"),
        "importance", settings);
  };
  ImportanceSettings settings;
  settings.importance = {.measure = ImportanceMeasure::kAblation,
                         .to = AblatedTo::kMean,
                         .within_attentions = true,
                         .heads = {HeadPattern("encoder.*"), HeadPattern("decoder.0.self_attention.1")},
                         .texts = {.masked = 0.25, .seed = 7}};
  settings.curve = true;
  settings.steps = {.points = 2, .random_orders = 3};
  const std::string first = report(settings);
  ImportanceSettings again;
  read_report_options(again, first, "importance", "report.json");
  EXPECT_EQ(to_json(again), to_json(settings));
  EXPECT_EQ(report(again), first);
  EXPECT_NE(report({.curve = true}), first);
}

/// What a verb's report gives back of the settings that it was made with.
template <class Settings>
std::string given_back(const Settings& settings) {
  Settings found;
  read_report_options(found, with_options(R"({"schema":1})", "verb", settings), "verb", "r.json");
  return to_json(found);
}

TEST(ReportOptions, AreThoseOfEveryVerb) {
  const std::string no_languages = "  \"source_language\": null,\n  \"target_language\": null\n";
  const ObserveHeadsOptions of_many{.languages = {"de", "ron_Latn"}};
  EXPECT_EQ(given_back(of_many), to_json(of_many));
  EXPECT_THAT(to_json(of_many),
              HasSubstr("\"source_language\": \"de\",\n  \"target_language\": \"ron_Latn\"\n"));
  const ObserveHeadsOptions read{.observe = {.max_batch_tokens = 77}};
  EXPECT_EQ(given_back(read), "{\n  \"max_batch_tokens\": 77,\n" + no_languages + "}\n");
  const PatchOptions patch{.part = PatchedPart::kPattern, .by_position = true, .max_batch_tokens = 8};
  EXPECT_EQ(given_back(patch),
            "{\n  \"what\": \"patterns\",\n  \"by_position\": true,\n  \"max_batch_tokens\": 8,\n" +
                no_languages + "}\n");
  const SteerOptions steer{.direction = {.rows = DirectionRows::kAll}, .max_batch_tokens = 9};
  EXPECT_EQ(given_back(steer), to_json(steer));
  EXPECT_THAT(to_json(steer), HasSubstr("\"rows\": \"all\",\n"));
  const RetrievalOptions retrieval{
      .answers = AnswerDecoding::kGreedy, .limit = LimitedRows::kAll, .window = 7};
  EXPECT_EQ(given_back(retrieval), to_json(retrieval));
  EXPECT_THAT(to_json(retrieval), HasSubstr("\"limit\": \"all\",\n"));
  const FaithfulnessOptions attribution{
      .attribution = {.methods = {AttributionMethod::kRollout, AttributionMethod::kFlow}, .steps = 3},
      .points = 4,
      .seed = 5};
  EXPECT_EQ(given_back(attribution), to_json(attribution));
  EXPECT_THAT(to_json(attribution), HasSubstr("\"methods\": [\n    \"rollout\",\n    \"flow\"\n  ],\n"));
  const WhereOptions where{.evidence = {.sentences = 2}, .read = read};
  EXPECT_EQ(given_back(where), to_json(where));
}

TEST(ReportOptions, OfOneTextAreOptionsOnACorpusToo) {
  const AttributionOptions text{
      .methods = {AttributionMethod::kRelevance}, .target_token = "dog", .steps = 3};
  const std::string report = with_options(R"({"schema":1})", "attribution", text);
  EXPECT_THAT(report, testing::Not(HasSubstr("dog"))) << "a question about the text is no option";
  FaithfulnessOptions corpus{.points = 9};
  read_report_options(corpus, report, "attribution", "r.json");
  EXPECT_EQ(corpus.attribution.methods, text.methods);
  EXPECT_EQ(corpus.attribution.steps, 3);
  EXPECT_EQ(corpus.points, 9);
}

TEST(ReportOptions, OfAnotherKindAreRefused) {
  const auto refused = [](const std::string& report) {
    ImportanceSettings settings;
    try {
      read_report_options(settings, report, "importance", "r.json");
    } catch (const FormatError& error) {
      return std::string(error.what());
    }
    return std::string("read");
  };
  const std::pair<const char*, const char*> wrong[] = {
      {"[]", "r.json: expected a report of `multihead heads importance --json`, with \"schema\""},
      {R"({"schema":1,"verb":"importance"})", "with \"schema\", \"verb\" and \"options\""},
      {R"({"schema":2,"verb":"importance","options":{}})",
       "r.json: its schema is 2, and this version reads 1"},
      {R"({"schema":1,"verb":"similar","options":{}})", "got one of \"similar\""},
      {R"({"schema":1,"verb":"importance","options":[]})", "r.json: options: expected an object"},
      {R"({"schema":1,"verb":"importance","options":{"normalized":true}})",
       "r.json: options: unknown key \"normalized\", did you mean normalised?"},
      {R"({"schema":1,"verb":"importance","options":{"by":"magic"}})", "by: expected one of \"gradient\""},
      {R"({"schema":1,"verb":"importance","options":{"masked":2}})",
       "masked: expected a number from 0.001 to 1"},
      {R"({"schema":1,"verb":"importance","options":{"points":0}})",
       "points: expected an integer from 1 to 10000"},
  };
  for (const auto& [report, message] : wrong) EXPECT_THAT(refused(report), HasSubstr(message));
  EXPECT_EQ(refused(R"({"schema":1,"verb":"importance","options":{}})"), "read") << "what is not there stays";
}

TEST(ReportOptions, StandBesideThePrecisionOfTheModel) {
  const ObserveHeadsOptions options;
  for (const auto& [name, precision] : kPrecisionNames) {
    const std::string report = with_options(R"({"schema":1})", "stats", options, precision);
    EXPECT_EQ(nlohmann::json::parse(report)["precision"], name);
    EXPECT_EQ(precision_in_report(report, "r.json"), precision);
  }
  const std::string of_weights = with_options(R"({"schema":1})", "circuits", options);
  EXPECT_FALSE(nlohmann::json::parse(of_weights).contains("precision"));
  EXPECT_EQ(precision_in_report(of_weights, "r.json"), std::nullopt);
  struct Wrong {
    const char *report, *message;
  };
  const Wrong wrong[] = {
      {R"({"precision":"slow"})", "r.json: precision: expected same|near|fast, got \"slow\""},
      {R"({"precision":8})", "r.json: precision: expected same|near|fast, got 8"},
      {"{", "r.json"},
  };
  for (const Wrong& each : wrong)
    EXPECT_THAT([&] { precision_in_report(each.report, "r.json"); },
                testing::ThrowsMessage<FormatError>(HasSubstr(each.message)));
}

TEST(ReportOptions, SayNothingOfPaths) {
  const auto families = scored_families();
  const HeadsText text = lines_of_importance(true);
  TextCorpus corpus(text);
  const auto json = nlohmann::json::parse(
      with_options(importance_json(heads_importance(families[0].model, corpus, {}), "models/m"), "importance",
                   ImportanceSettings()));
  EXPECT_EQ(json["model"], "models/m");
  EXPECT_EQ(json["verb"], "importance");
  EXPECT_THAT(json["options"].dump(), testing::Not(HasSubstr("models")));
  EXPECT_EQ(json["options"]["by"], "gradient");
}

}  // namespace
}  // namespace mh
