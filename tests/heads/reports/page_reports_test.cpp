// Reports of circuits, of retrieval and of heads that align on a page: what is shown of them, and files that are none of this model.
#include "multihead/heads/reports/page/page_reports.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "multihead/base/error.h"
#include "multihead/heads/circuit/heads_circuit.h"
#include "multihead/heads/corpus/heads_corpus.h"
#include "multihead/heads/measures/heads_alignment.h"
#include "multihead/heads/reports/circuit_json.h"
#include "multihead/heads/reports/measures_json.h"
#include "multihead/heads/reports/report_options.h"
#include "multihead/heads/reports/retrieval_json.h"
#include "multihead/heads/retrieval/heads_retrieval.h"
#include "tests/heads/attribution/attribution_families.h"
#include "tests/heads/reports/read_page.h"
#include "tests/heads/retrieval/numbered_words.h"

namespace mh {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::StartsWith;
using testing::ThrowsMessage;

const std::vector<PageText> kShown = {{"the small dog sees a cat .", "der kleine Hund sieht eine Katze ."}};

/// Of the demo, on two pairs.
const std::string& demo_circuit() {
  static const std::string report = [] {
    const ScoredModel model = load_scored_model("demo");
    CircuitOptions options{.share = 0.9, .exact = 7, .random = 5};
    std::vector<PatchQuestion> pairs;
    for (const char* seen : {"cat", "man"}) {
      const std::string rest = std::string(" sees a ") + seen + " .";
      pairs.push_back({.clean = "the small dog" + rest,
                       .corrupt = "the small cat" + rest,
                       .answer = "Hund",
                       .wrong = "Katze",
                       .prefix = "der kleine"});
    }
    return with_options(circuit_json(heads_circuit(model, pairs, options), "demo"), "circuit", options,
                        PrecisionChoice());
  }();
  return report;
}

/// A report with a change.
std::string changed(const std::string& report, const std::function<void(json&)>& change) {
  json now = json::parse(report);
  change(now);
  return now.dump();
}

TEST(PageReports, ShowACircuitWithAllThatItsPictureNeeds) {
  const ScoredModel model = load_scored_model("demo");
  const PageRun run = page_run(model, kShown,
                               {.name = "demo",
                                .model = "demo",
                                .importance = false,
                                .circuit = {.json = demo_circuit(), .name = "c.json"}});
  HeadsPage page({.head = "encoder.0.self_attention.0"});
  page.add_run(run, kShown);
  const json header = read_page(page.html()).header["runs"][0], shown = header["circuit"];
  EXPECT_TRUE(header["retrieval"].is_null());
  const json report = json::parse(demo_circuit());
  for (const char* same : {"model", "precision", "measure", "pairs", "edges_of_model", "pairs_elsewhere"})
    EXPECT_EQ(shown[same], report[same]) << same;
  EXPECT_NEAR(shown["faithfulness"]["mean"], report["faithfulness"]["mean"].get<double>(), 1e-4);
  EXPECT_EQ(shown["edges_of_circuit"], report["edges"].size());
  ASSERT_EQ(shown["edges"].size(), report["edges"].size());
  ASSERT_EQ(shown["exact"].size(), 7u);
  for (size_t i = 0; i < shown["edges"].size(); ++i) {
    const json &edge = shown["edges"][i], &whole = report["edges"][i];
    for (const char* same : {"from", "to", "input", "readers"}) EXPECT_EQ(edge[same], whole[same]);
    EXPECT_NEAR(edge["score"], whole["score"].get<double>(), 1e-3 * std::abs(whole["score"].get<double>()));
  }
  EXPECT_TRUE(shown["exact"][0]["effect"].contains("half"));
  EXPECT_EQ(shown["random"]["count"], 5);
}

TEST(PageReports, HaveNoMoreEdgesThanAPictureShows) {
  const ScoredModel model = load_scored_model("demo");
  const std::string many = changed(demo_circuit(), [](json& report) {
    const json edge = report["edges"][0];
    for (int i = 0; i < 2003; ++i) report["edges"].push_back(edge);
  });
  const json shown = json::parse(page_circuit(*model.folder().model, {.json = many, .name = "c.json"}));
  EXPECT_EQ(shown["edges"].size(), 2000u);
  EXPECT_GT(shown["edges_of_circuit"], 2003);
}

TEST(PageReports, OfACircuitThatIsNoneOfThisModelIsALine) {
  const ScoredModel model = load_scored_model("demo");
  const auto refused = [&](const std::string& report, const std::string& says) {
    EXPECT_THAT([&] { page_circuit(*model.folder().model, {.json = report, .name = "c.json"}); },
                ThrowsMessage<FormatError>(testing::AllOf(StartsWith("c.json: "), HasSubstr(says))))
        << report.substr(0, 200);
  };
  refused("{", "not JSON");
  refused("[]", "expected a report of `multihead heads circuit --json`");
  refused(changed(demo_circuit(), [](json& report) { report["verb"] = "lens"; }), "got one of \"lens\"");
  refused(changed(demo_circuit(), [](json& report) { report["schema"] = 2; }), "its schema is 2");
  refused(changed(demo_circuit(), [](json& report) { report["edges_of_model"] = 70651; }),
          "its model has 70651 edges, and this one 529; give the report of this model");
  refused(
      changed(demo_circuit(), [](json& report) { report["edges"][1]["from"] = "decoder.7.feed_forward"; }),
      "edges[1]: the model has no edge from 'decoder.7.feed_forward' to ");
  refused(changed(demo_circuit(),
                  [](json& report) {
                    report["edges"][0]["from"] = "decoder.1.feed_forward";
                    report["edges"][0]["to"] = "decoder.0.feed_forward";
                  }),
          "the model has no edge from 'decoder.1.feed_forward' to 'decoder.0.feed_forward'");
  refused(changed(demo_circuit(), [](json& report) { report["edges"][0]["readers"][0] = "x\ny"; }),
          "edges[0].readers[0]: the model has no 'x");
  refused(changed(demo_circuit(), [](json& report) { report["edges"][0]["score"] = "much"; }),
          "edges[0].score: expected a number");
  refused(changed(demo_circuit(), [](json& report) { report.erase("random"); }),
          "expected a member \"random\"");
  refused(changed(demo_circuit(), [](json& report) { report["pairs"] = -3; }),
          "pairs: expected a whole number");
  refused(changed(demo_circuit(), [](json& report) { report["faithfulness"] = 3; }),
          "faithfulness: expected an object");
}

/// Two heads of one layer.
ModelFolder small_folder() {
  CausalConfig config = test::gpt_config();
  Tokenizer tokenizer = test::numbered_tokenizer(19);
  config.embedding.vocabulary = tokenizer.size();
  config.max_positions = 67;
  ModelFolder folder = test::attribution_folder(std::make_unique<CausalModel>(config), std::move(tokenizer));
  return folder;
}

std::string small_retrieval(const ModelFolder& folder) {
  RetrievalTexts texts;
  texts.filler = "w1 w2 w3 w4 w5 w6 w7";
  texts.needles = {{.sentence = "w8 w11 w12 w13 w14 w9", .question = "w8 w11", .answer = "w12 w13 w14"},
                   {.sentence = "w10 w15 w16 w17", .question = "w9 w9 w15", .answer = "w16 w17"}};
  const RetrievalOptions options{.lengths = {13, 29},
                                 .depths = {0, 0.5, 1},
                                 .limit = LimitedRows::kAnswer,
                                 .window = 3,
                                 .text_tokens = 0};
  return with_options(retrieval_json(heads_retrieval(folder, texts, options), "small"), "retrieval", options,
                      PrecisionChoice());
}

TEST(PageReports, ShowWhichHeadsFetchAFact) {
  const ModelFolder folder = small_folder();
  const std::string written = small_retrieval(folder);
  const json report = json::parse(written);
  const json shown = json::parse(page_retrieval(*folder.model, {.json = written, .name = "r.json"}));
  EXPECT_EQ(shown["options"],
            json({{"answers", "forced"}, {"limit", "answer"}, {"sinks", 4}, {"window", 3}}));
  EXPECT_EQ(shown["places"].size(), 6u);
  EXPECT_EQ(shown["places"][1]["depth"], 0.5);
  EXPECT_EQ(shown["places"][3]["length"], 29);
  EXPECT_EQ(shown["needles"][1]["answer"], "w16 w17");
  ASSERT_EQ(shown["heads"].size(), report["heads"].size());
  EXPECT_EQ(shown["heads"][1]["head"], report["heads"][1]["head"]);
  for (const json& head : shown["heads"]) {
    double sum = 0;
    for (const json& score : head["by_place"]) sum += score.get<double>();
    EXPECT_NEAR(sum / 6, head["score"], 1e-3);
  }
  ASSERT_EQ(shown["limited"].size(), report["heads"].size());
  EXPECT_TRUE(shown["limited"][0]["loss_rise"].is_null());
  EXPECT_FALSE(shown.contains("trials"));
}

TEST(PageReports, OfRetrievalThatIsNoneOfThisModelIsALine) {
  const ModelFolder folder = small_folder();
  const std::string written = small_retrieval(folder);
  const auto refused = [&](const std::function<void(json&)>& change, const std::string& says) {
    EXPECT_THAT([&] { page_retrieval(*folder.model, {.json = changed(written, change), .name = "r.json"}); },
                ThrowsMessage<FormatError>(testing::AllOf(StartsWith("r.json: "), HasSubstr(says))));
  };
  refused([](json& report) { report["heads"][0]["head"] = "decoder.9.self_attention.0"; },
          "heads[0].head: the model has no head 'decoder.9.self_attention.0'; give the report of this model");
  refused([](json& report) { report["heads"].erase(0); }, "give the report of this model");
  refused([](json& report) { report["heads"][0]["by_place"].push_back(1); },
          "heads[0].by_place: expected 6 numbers, one for each of `places`, got 7");
  refused([](json& report) { report["limited"][0]["heads"][0] = "decoder.0.feed_forward"; },
          "limited[0].heads[0]: the model has no head");
  refused([](json& report) { report.erase("places"); }, "expected a member \"places\"");
  const ScoredModel demo = load_scored_model("demo");
  EXPECT_THAT([&] { page_retrieval(*demo.folder().model, {.json = written, .name = "r.json"}); },
              ThrowsMessage<FormatError>(HasSubstr("give the report of this model")));
  EXPECT_THAT([&] { page_retrieval(*folder.model, {.json = demo_circuit(), .name = "r.json"}); },
              ThrowsMessage<FormatError>(HasSubstr("got one of \"circuit\"")));
}

/// Of the demo, whose two layers of cross-attention have four heads each, on three pairs.
const std::string& demo_aligners() {
  static const std::string report = [] {
    const ScoredModel model = load_scored_model("demo");
    TextCorpus corpus(
        {.sources = {"the small dog sees a cat .", "a man runs .", "the old woman reads the book ."}});
    const ObserveHeadsOptions options;
    return with_options(
        alignment_json(heads_alignment_without_gold(model.folder(), corpus, {.read = options}), "demo"),
        "alignment", options, PrecisionChoice());
  }();
  return report;
}

TEST(PageReports, ShowWhichHeadsAlign) {
  const ScoredModel model = load_scored_model("demo");
  const json report = json::parse(demo_aligners());
  const json shown =
      json::parse(page_aligners(*model.folder().model, {.json = demo_aligners(), .name = "a.json"}));
  for (const char* same : {"model", "precision", "sentences", "targets"})
    EXPECT_EQ(shown[same], report[same]) << same;
  EXPECT_EQ(shown["alignment_baseline"]["offset"], report["alignment_baseline"]["offset"]);
  EXPECT_EQ(shown["alignment_baseline"]["support"], report["alignment_baseline"]["support"]);
  ASSERT_EQ(shown["alignment"].size(), report["alignment"].size());
  ASSERT_EQ(shown["alignment"].size(), 2u * (2 * 4 + 2));
  for (size_t i = 0; i < shown["alignment"].size(); ++i) {
    const json &one = shown["alignment"][i], &whole = report["alignment"][i];
    for (const char* same : {"head", "query", "support"})
      EXPECT_EQ(one[same], whole[same]) << i << " " << same;
    for (const char* near : {"precision", "recall", "error_rate", "accuracy"})
      EXPECT_NEAR(one[near], whole[near].get<double>(), 1e-4) << i << " " << near;
  }
  const json &chosen = shown["chosen"], &whole = report["chosen"];
  EXPECT_EQ(chosen["query"], whole["query"]);
  EXPECT_NEAR(chosen["error_rate"], whole["error_rate"].get<double>(), 1e-4);
  ASSERT_EQ(chosen["heads"].size(), whole["heads"].size());
  for (size_t i = 0; i < chosen["heads"].size(); ++i)
    EXPECT_EQ(chosen["heads"][i],
              "decoder." + whole["heads"][i][0].dump() + ".cross_attention." + whole["heads"][i][1].dump());
}

TEST(PageReports, OfAlignmentMayBeComparedWithGold) {
  const ScoredModel model = load_scored_model("demo");
  const std::string gold = changed(demo_aligners(), [](json& report) { report.erase("chosen"); });
  const json shown = json::parse(page_aligners(*model.folder().model, {.json = gold, .name = "a.json"}));
  EXPECT_TRUE(shown["chosen"].is_null());
  EXPECT_EQ(page_aligners(*model.folder().model, {}), "");
}

TEST(PageReports, OfAlignmentThatIsNoneOfThisModelIsALine) {
  const ScoredModel model = load_scored_model("demo");
  const auto refused = [&](const std::function<void(json&)>& change, const std::string& says) {
    EXPECT_THAT(
        [&] {
          page_aligners(*model.folder().model, {.json = changed(demo_aligners(), change), .name = "a.json"});
        },
        ThrowsMessage<FormatError>(testing::AllOf(StartsWith("a.json: "), HasSubstr(says))));
  };
  refused([](json& report) { report["alignment"][0]["head"] = "decoder.7.cross_attention.0"; },
          "alignment[0].head: the model has no head 'decoder.7.cross_attention.0'; give the report of this "
          "model");
  refused([](json& report) { report["alignment"][0]["head"] = "decoder.0.self_attention.0"; },
          "the model has no head 'decoder.0.self_attention.0'");
  refused([](json& report) { report["alignment"].erase(3); },
          "it has 7 heads, and the model 8; give the report of this model");
  refused(
      [](json& report) { report["alignment"].push_back(report["alignment"][0]); },
      "alignment[20]: decoder.0.cross_attention.0 is there twice by the same query; make the report again");
  refused([](json& report) { report["alignment"][2]["query"] = "writes"; },
          "alignment[2].query: expected predicts or reads, got 'writes'");
  refused([](json& report) { report["alignment"][2]["precision"] = 1.5; },
          "alignment[2].precision: expected a share from 0 to 1, got 1.5");
  refused([](json& report) { report["chosen"]["error_rate"] = "low"; },
          "chosen.error_rate: expected a number");
  refused(
      [](json& report) {
        report["chosen"]["heads"][0] = {5, 0};
      },
      "chosen.heads[0]: the model has no layer 5 of cross-attention; give the report of this model");
  refused(
      [](json& report) {
        report["chosen"]["heads"][0] = {1, 4};
      },
      "chosen.heads[0]: the model has no head 'decoder.1.cross_attention.4'");
  refused([](json& report) { report["chosen"]["heads"][0] = {1}; },
          "chosen.heads[0]: expected the number of a layer and that of a head");
  refused([](json& report) { report["chosen"]["heads"] = json::array(); }, "expected one head at least");
  for (const char* name : {"alignment", "alignment_baseline", "sentences", "targets"})
    refused([&](json& report) { report.erase(name); }, std::string("expected a member \"") + name);
  refused([](json& report) { report["verb"] = "stats"; }, "got one of \"stats\"");
  const ModelFolder small = small_folder();
  EXPECT_THAT([&] { page_aligners(*small.model, {.json = demo_aligners(), .name = "a.json"}); },
              ThrowsMessage<FormatError>(HasSubstr("the model has none; give the report of this model")));
}

}  // namespace
}  // namespace mh
