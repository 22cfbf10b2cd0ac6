// The data of a page beside the weights that the model has.
#include "multihead/heads/reports/page/heads_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/base/file.h"
#include "multihead/heads/sites/observe_text.h"
#include "tests/heads/attribution/attribution_families.h"
#include "tests/heads/reports/read_page.h"
#include "tests/heads/small_translator.h"
#include "tests/support/places.h"

namespace mh {
namespace {

using nlohmann::json;
using testing::HasSubstr;

/// What the page computes: from roots, from halves, or from queries and keys.
std::vector<float> shown_weights(const ReadPage& page, const json& attention, const json& maps) {
  if (!maps["roots"].is_null()) {
    std::vector<float> shown;
    for (const uint8_t byte : page.block<uint8_t>(maps["roots"]))
      shown.push_back(static_cast<float>(byte) / 255 * static_cast<float>(byte) / 255);
    return shown;
  }
  if (!maps["halves"].is_null()) return page.halves(maps["halves"]);
  const json& products = maps["products"];
  const std::vector<float> q = page.halves(products["q"]), k = page.halves(products["k"]);
  const int64_t heads = attention["heads"], key_heads = attention["key_heads"], d_key = attention["d_key"],
                queries = maps["queries"], keys = maps["keys"], window = products["window"];
  const std::vector<float> bias = products["bias"].is_null()
                                      ? std::vector<float>(static_cast<size_t>(heads * (queries + keys - 1)))
                                      : page.block<float>(products["bias"]);
  std::vector<float> shown(static_cast<size_t>(heads * queries * keys));
  for (int64_t h = 0; h < heads; ++h) {
    for (int64_t i = 0; i < queries; ++i) {
      const int64_t end = attention["causal"] ? std::min(keys, i + 1) : keys,
                    begin = window > 0 ? std::max<int64_t>(0, end - window) : 0;
      float* row = shown.data() + (h * queries + i) * keys;
      float sum = 0;
      for (int64_t j = begin; j < end; ++j) {
        float product = 0;
        for (int64_t d = 0; d < d_key; ++d)
          product += q[static_cast<size_t>((h * queries + i) * d_key + d)] *
                     k[static_cast<size_t>((h * key_heads / heads * keys + j) * d_key + d)];
        float score = products["scale"].get<float>() * product;
        if (!products["soft_cap"].is_null()) {
          const float cap = products["soft_cap"];
          score = cap * std::tanh(score / cap);
        }
        row[j] = std::exp(score + bias[static_cast<size_t>(h * (queries + keys - 1) + j - i + queries - 1)]);
        sum += row[j];
      }
      for (int64_t j = begin; j < end; ++j) row[j] /= sum;
    }
  }
  return shown;
}

/// The largest difference between what the page shows and what the model has.
float largest_error(const ReadPage& page, const ModelFolder& folder, const std::vector<PageText>& texts) {
  float largest = 0;
  const json& run = page.header["runs"][0];
  for (size_t t = 0; t < texts.size(); ++t) {
    const Observation seen = observe_text(folder, texts[t].source, texts[t].target);
    for (size_t a = 0; a < seen.attentions.size(); ++a) {
      const std::vector<float> shown = shown_weights(page, run["attentions"][a], run["texts"][t]["maps"][a]);
      size_t at = 0;
      for (int h = 0; h < seen.attentions[a].heads; ++h) {
        const ConstMatrixView weights = seen.weights({seen.attentions[a].name, h});
        for (int64_t i = 0; i < weights.rows; ++i) {
          for (int64_t j = 0; j < weights.cols; ++j)
            largest = std::max(largest, std::abs(weights(i, j) - shown.at(at++)));
        }
      }
      EXPECT_EQ(at, shown.size());
    }
  }
  return largest;
}

PageEvidence evidence_of(const ModelFolder& folder, const std::vector<PageText>& texts) {
  TextCorpus corpus(corpus_text(texts));
  return page_evidence(folder, corpus, {.model = "model"});
}

std::string page_of(const ModelFolder& folder, const std::vector<PageText>& texts,
                    HeadsPageOptions options = {}, const std::string& walk = {}) {
  HeadsPage page(std::move(options));
  page.add_run({.name = "model", .folder = &folder, .evidence = evidence_of(folder, texts), .walk = walk},
               texts);
  return page.html();
}

/// Of the weights alone: evidence takes longer.
ReadPage page_of_weights(const ModelFolder& folder, const std::vector<PageText>& texts) {
  const Model::Attention first = folder.model->attentions().front();
  HeadsPage page({.head = first.name + ".0"});
  page.add_run({.name = "model", .folder = &folder, .evidence = {.stats = R"({"heads": []})"}}, texts);
  return read_page(page.html());
}

std::string repeated(const std::string& words, int times) {
  std::string text;
  for (int i = 0; i < times; ++i) text += words + " ";
  return text;
}

const std::vector<std::string> kLines = {"two dogs run in the park", "a cat sees the small dogs"};

TEST(HeadsPage, ShowsTheWeightsOfATranslator) {
  const ModelFolder folder = load_model_folder("demo");
  const std::vector<PageText> texts = {{"the small dog sees a cat .", "der kleine Hund sieht eine Katze ."},
                                       {"a man reads the old book .", "ein Mann liest das alte Buch ."}};
  const ReadPage page = read_page(page_of(folder, texts));
  EXPECT_LT(largest_error(page, folder, texts), 0.004f);
  const json& text = page.header["runs"][0]["texts"][0];
  EXPECT_EQ(text["target"]["tokens"][0]["label"], "<start>");
  EXPECT_EQ(text["target"]["tokens"][1]["label"], "der");
  EXPECT_EQ(text["predicted"]["tokens"][0]["label"], "der");
  EXPECT_EQ(text["source"]["tokens"].size(), text["maps"][0]["keys"]);
  EXPECT_FALSE(text["maps"][0]["products"].is_null()) << "for the bars of a pair";
  EXPECT_FALSE(text["maps"][0]["value_lengths"].is_null());
}

// Of short and of long texts.
TEST(HeadsPage, ShowsWeightsOfCappedScores) {
  Tokenizer tokenizer = test::attribution_tokenizer();
  CausalConfig config = test::gpt_config();
  config.embedding.vocabulary = tokenizer.size();
  config.max_positions = 300;
  for (LayerConfig& layer : config.stack.layers) layer.self_attention.soft_cap = 0.25f;
  const ModelFolder folder =
      test::attribution_folder(std::make_unique<CausalModel>(config), std::move(tokenizer));
  for (const int times : {1, 20}) {
    const std::vector<PageText> texts = {{repeated("two dogs run in the park", times)}};
    const ReadPage page = page_of_weights(folder, texts);
    EXPECT_LT(largest_error(page, folder, texts), 0.004f);
    for (const json& maps : page.header["runs"][0]["texts"][0]["maps"]) {
      ASSERT_FALSE(maps["products"].is_null());
      EXPECT_EQ(maps["products"]["soft_cap"], 0.25f);
    }
  }
}

TEST(HeadsPage, PlacesTheTokensOfAGreedyTranslation) {
  const ModelFolder folder = load_model_folder("demo");
  const ReadPage page = read_page(page_of(folder, {{"the small dog sees a cat ."}}));
  const json& target = page.header["runs"][0]["texts"][0]["target"];
  EXPECT_EQ(target["text"], "der kleine Hund sieht eine Katze .");
  EXPECT_EQ(target["tokens"][2]["begin"], 4);
  EXPECT_EQ(target["tokens"][2]["word"], 1);
  EXPECT_EQ(target["tokens"][0]["special"], true);
}

TEST(SlowHeadsPage, ShowsTheWeightsOfRealModels) {
  const char* models = std::getenv("MULTIHEAD_MODELS");
  if (models == nullptr) GTEST_SKIP() << "set MULTIHEAD_MODELS to the folder that scripts/models makes";
  const std::string sentence = "The chef who ran the kitchen cooked the meal for the guests.";
  for (const char* name : {"minilm", "smollm2.gguf"}) {
    const ModelFolder folder = load_model_folder(std::filesystem::path(models) / name);
    for (const std::vector<PageText>& texts :
         {std::vector<PageText>{{sentence}, {"Paris is the capital of France."}},
          std::vector<PageText>{{repeated(sentence, 17)}}}) {
      const ReadPage page = page_of_weights(folder, texts);
      EXPECT_LT(largest_error(page, folder, texts), 0.004f) << name;
      EXPECT_EQ(page.header["runs"][0]["texts"][0]["maps"][0]["roots"].is_null(), texts.size() == 1);
    }
  }
}

TEST(HeadsPage, WalksThroughAnAttention) {
  const ModelFolder folder = load_model_folder("demo");
  const ReadPage page = read_page(page_of(folder, {{"a cat runs ."}}, {}, "decoder.0.cross_attention"));
  const json& walk = page.header["runs"][0]["walk"];
  EXPECT_EQ(walk["attention"], "decoder.0.cross_attention");
  std::vector<std::string> names;
  for (const json& step : walk["steps"]) {
    names.push_back(step["name"]);
    EXPECT_EQ(page.block<float>(step["numbers"]).size(),
              step["rows"].get<size_t>() * step["columns"].get<size_t>());
  }
  EXPECT_THAT(
      names, testing::IsSupersetOf({"w_q_0", "q_0", "k_0", "v_0", "weights_0", "z_0", "z", "w_o", "output"}));
}

TEST(HeadsPage, CarriesAnyText) {
  const ModelFolder folder = load_model_folder("demo");
  const std::string hostile = std::string("</script><script>alert(1)</script> \"' \xE2\x80\xAE ") + '\0' +
                              " \xF0\x9F\x91\xA9\xE2\x80\x8D\xF0\x9F\x94\xAC {data}";
  const std::string html = page_of(folder, {{hostile}});
  EXPECT_EQ(html.find("alert(1)"), std::string::npos) << "all of it is in the data";
  EXPECT_EQ(read_page(html).header["runs"][0]["texts"][0]["source"]["text"], hostile);
}

// The page's policy allows the script and the style by their hashes: nothing of them may change.
TEST(HeadsPage, LeavesThePageAroundItsDataAsItIs) {
  const std::string page = read_file(std::filesystem::path(source_folder()) / "share/viewer/page.html");
  const auto parts = [&](std::initializer_list<const char*> places) {
    std::vector<std::string> parts;
    size_t from = 0;
    for (const std::string place : places) {
      const size_t at = page.find(place);
      parts.push_back(page.substr(from, at - from));
      from = at + place.size();
    }
    parts.push_back(page.substr(from));
    return parts;
  };
  const std::vector<std::string> around = parts({"{live-policy}", "{data}", "{live}"});
  ASSERT_EQ(around.size(), 4u);
  const std::string html = page_of(load_model_folder("demo"), {{"a cat runs ."}});
  EXPECT_THAT(html, testing::StartsWith(around[0] + around[1]));
  EXPECT_THAT(html, testing::EndsWith(around[2] + around[3]));

  const ModelFolder folder = load_model_folder("demo");
  HeadsPage live({});
  live.add_run({.name = "demo", .folder = &folder, .evidence = evidence_of(folder, {{"a cat runs ."}})},
               {{"a cat runs ."}});
  live.add_live({.html = "<p>live</p>"});
  EXPECT_THAT(live.html(),
              testing::StartsWith(around[0] + " 'wasm-unsafe-eval'; worker-src blob:" + around[1]));
  EXPECT_THAT(live.html(), testing::EndsWith(around[2] + "<p>live</p>" + around[3]));
}

TEST(HeadsPage, OpensAtTheHeadThatWasNamed) {
  const ModelFolder folder = load_model_folder("demo");
  const std::string head = "encoder.1.self_attention.3";
  EXPECT_EQ(read_page(page_of(folder, {{"a cat runs ."}}, {.head = head})).header["opens"]["head"], head);
  EXPECT_THAT([&] { page_of(folder, {{"a cat runs ."}}, {.head = "encoder.9.self_attention.3"}); },
              testing::ThrowsMessage<UsageError>(HasSubstr("encoder.1.self_attention")));
}

// Relations have the names of a file, which may turn the writing round.
TEST(HeadsPage, NamesOfRelationsCannotTurnItsWritingRound) {
  const ModelFolder folder = small_translator(kLines);
  const std::vector<PageText> texts = {{"two dogs run", "a cat sees"}};
  PageEvidence evidence = evidence_of(folder, texts);
  evidence.relations =
      R"({"relations": [], "best": [{"relation": "ob\u202ej", "direction": "to_head", "support": 1,
      "head": "encoder.0.self_attention.0", "score": 0.5, "baseline": 0.25, "gain_half_width": null}]})";
  HeadsPage page({.mode = PageMode::kOne});
  page.add_run({.name = "one", .folder = &folder, .evidence = evidence}, texts);
  const std::string html = page.html();
  EXPECT_EQ(html.find("\u202e"), std::string::npos);
  EXPECT_EQ(read_page(html).header["runs"][0]["evidence"]["relations"]["best"][0]["relation"], "ob\\u202ej");
}

TEST(HeadsPage, RefusesWhatIsNotThere) {
  const ModelFolder demo = load_model_folder("demo");
  EXPECT_THAT([&] { page_of(demo, {{""}}); }, testing::Throws<Error>());
  EXPECT_THAT([&] { page_of(demo, {{"a cat ."}}, {}, "encoder.7.self_attention"); },
              testing::ThrowsMessage<UsageError>(HasSubstr("encoder.7.self_attention")));
  EXPECT_THAT([&] { page_of(demo, {{repeated("a cat", 20)}}, {.most_megabytes = 0}); },
              testing::ThrowsMessage<UsageError>(HasSubstr("`max_size`")));
}

TEST(HeadsPage, FollowsRunsOfOneShape) {
  const ModelFolder one = small_translator(kLines), two = small_translator(kLines, 2);
  const std::vector<PageText> texts = {{"two dogs run", "a cat sees"}};
  for (const PageMode mode : {PageMode::kCompare, PageMode::kTime}) {
    HeadsPage page({.mode = mode});
    page.add_run({.name = "one", .folder = &one, .evidence = evidence_of(one, texts)}, texts);
    const auto add = [&] {
      page.add_run({.name = "two", .folder = &two, .evidence = evidence_of(two, texts)}, texts);
    };
    if (mode == PageMode::kTime) {
      EXPECT_THAT(add, testing::ThrowsMessage<UsageError>(HasSubstr("two has other heads than one")));
    } else {
      add();
      EXPECT_EQ(read_page(page.html()).header["runs"].size(), 2u);
    }
  }
}

}  // namespace
}  // namespace mh
