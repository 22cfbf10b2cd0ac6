#include "multihead/evaluate/bleu.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <map>

#include "multihead/base/error.h"
#include "multihead/base/file.h"
#include "multihead/base/stop.h"
#include "multihead/base/thread_pool.h"
#include "multihead/evaluate/bootstrap.h"
#include "multihead/io/lines.h"
#include "nlohmann/json.hpp"
#include "tests/support/places.h"

namespace mh {
namespace {

using testing::HasSubstr;
using Lines = std::vector<std::string>;

Lines lines_of(const std::string& name) {
  return read_lines(std::filesystem::path(goldens_folder()) / "evaluate" / name);
}
nlohmann::json golden() {
  return nlohmann::json::parse(read_file(std::filesystem::path(goldens_folder()) / "evaluate" / "bleu.json"));
}

BleuConfig config_of(const nlohmann::json& entry) {
  const std::map<std::string, BleuTokenizer> tokenizers{
      {"13a", BleuTokenizer::k13a}, {"intl", BleuTokenizer::kIntl}, {"none", BleuTokenizer::kNone}};
  const std::map<std::string, BleuSmoothing> smoothings{{"exp", BleuSmoothing::kExp},
                                                        {"floor", BleuSmoothing::kFloor},
                                                        {"add-k", BleuSmoothing::kAddK},
                                                        {"none", BleuSmoothing::kNone}};
  BleuConfig config;
  config.tokenizer = tokenizers.at(entry["tokenize"]);
  config.lowercase = entry["lowercase"];
  config.smoothing = smoothings.at(entry["smooth"]);
  config.effective_order = entry["effective"];
  if (!entry["value"].is_null()) config.smoothing_value = entry["value"].get<double>();
  return config;
}

TEST(Bleu, EqualsSacrebleuToThePrintedDigit) {
  const auto entries = golden()["bleu"];
  EXPECT_GT(entries.size(), 100u);
  for (const auto& entry : entries) {
    std::vector<Lines> references;
    for (const std::string name : entry["refs"]) references.push_back(lines_of(name));
    const Bleu bleu(config_of(entry), references);
    const BleuScore score = bleu.score(lines_of(entry["hyp"]));
    EXPECT_EQ(score.line(), entry["line"].get<std::string>()) << entry;
    EXPECT_NEAR(score.score, entry["score"].get<double>(), 1e-10) << entry;
    EXPECT_EQ(bleu.signature(), entry["signature"].get<std::string>() + "|impl:multihead-0.1.0") << entry;
  }
}

TEST(Bleu, CountsByHand) {
  const Bleu bleu({}, std::vector<Lines>{{"the cat sat on the mat", "a"}, {"there is a cat", "b c"}});
  const auto counts = bleu.counts(Lines{"the the the cat there", "b c d"});
  // "the" twice at most in one reference; "there" in the other; nothing else but "the cat".
  EXPECT_EQ(counts[0],
            (BleuCounts{.hyp_len = 5, .ref_len = 4, .matches = {4, 1, 0, 0}, .totals = {5, 4, 3, 2}}));
  EXPECT_EQ(counts[1],
            (BleuCounts{.hyp_len = 3, .ref_len = 2, .matches = {2, 1, 0, 0}, .totals = {3, 2, 1, 0}}));
}

TEST(Bleu, MosesLowersTheWordsAfterSplitting) {
  BleuConfig config;
  config.tokenizer = BleuTokenizer::kMoses;
  config.language = MosesLanguage::kGerman;
  config.lowercase = true;
  const Bleu bleu(config, std::vector<Lines>{{"Er geht. Sie bleibt hier."}});
  EXPECT_NEAR(bleu.score(Lines{"er geht . sie bleibt hier ."}).score, 100.0, 1e-9);
  EXPECT_THAT(bleu.signature(), HasSubstr("case:lc|eff:no|tok:moses-de|"));
}

TEST(Bleu, RefusesWhatDoesNotPair) {
  const auto message = [](auto body) -> std::string {
    try {
      body();
    } catch (const FormatError& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_THAT(message([] { Bleu({}, {}); }), HasSubstr("no reference"));
  EXPECT_THAT(message([] { Bleu({}, std::vector<Lines>{{}}); }), HasSubstr("no reference"));
  EXPECT_THAT(message([] {
                Bleu({}, std::vector<Lines>{{"a", "b"}, {"a"}});
              }),
              HasSubstr("reference 2 has 1"));
  const Lines reference{"a", "b"};
  EXPECT_THAT(message([&] { corpus_bleu(Lines{"a"}, reference); }), HasSubstr("1 hypotheses for 2"));
}

TEST(Bootstrap, EqualsSacrebleuUpToChance) {
  const auto expected = golden()["bootstrap"];
  const Bleu bleu({}, std::vector<Lines>{lines_of("corpus.ref")});
  const std::vector<std::vector<BleuCounts>> systems{bleu.counts(lines_of("corpus.a")),
                                                     bleu.counts(lines_of("corpus.b")),
                                                     bleu.counts(lines_of("corpus.a"))};
  const auto results = paired_bootstrap(systems, {}, {.samples = expected["samples"]});
  ASSERT_EQ(results.size(), 3u);
  for (size_t s = 0; s < 3; ++s) {
    const auto& row = expected["systems"][s];
    EXPECT_NEAR(results[s].score, row["score"].get<double>(), 1e-10);
    EXPECT_NEAR(results[s].mean, row["mean"].get<double>(), 0.1);
    EXPECT_NEAR(results[s].half_width, row["ci"].get<double>(), 0.1);
    EXPECT_EQ(results[s].p_value.has_value(), s > 0);
  }
  EXPECT_NEAR(*results[1].p_value, expected["systems"][1]["p"].get<double>(), 2e-3);
  EXPECT_EQ(*results[2].p_value,
            expected["systems"][2]["p"].get<double>());  // itself: no difference, never exceeded
}

TEST(Bootstrap, SameSeedSameResultForAnyThreads) {
  const Bleu bleu({}, std::vector<Lines>{lines_of("corpus.ref")});
  const std::vector<std::vector<BleuCounts>> systems{bleu.counts(lines_of("corpus.a")),
                                                     bleu.counts(lines_of("corpus.b"))};
  std::vector<std::vector<BootstrapResult>> runs;
  for (const int threads : {1, 3}) {
    set_thread_count(threads);
    runs.push_back(paired_bootstrap(systems, {}, {.samples = 101}));
  }
  runs.push_back(paired_bootstrap(systems, {}, {.samples = 101, .seed = 7}));
  for (size_t s = 0; s < 2; ++s) {
    EXPECT_EQ(runs[0][s].mean, runs[1][s].mean);
    EXPECT_EQ(runs[0][s].half_width, runs[1][s].half_width);
    EXPECT_EQ(runs[0][s].p_value, runs[1][s].p_value);
    EXPECT_NE(runs[0][s].mean, runs[2][s].mean);
  }
}

TEST(Bootstrap, RefusesSystemsOfUnequalLength) {
  const std::vector<std::vector<BleuCounts>> unequal{std::vector<BleuCounts>(3), std::vector<BleuCounts>(2)};
  EXPECT_THROW(paired_bootstrap(unequal, {}), FormatError);
  EXPECT_THROW(paired_bootstrap(std::vector<std::vector<BleuCounts>>(1), {}), FormatError);
}

TEST(Bleu, EndsWhenTheCallerAsks) {
  const std::vector<Lines> references{{"a dog runs .", "a cat sleeps ."}};
  const Bleu bleu({}, references);
  const StopScope scope([] { return true; });
  EXPECT_THROW(Bleu({}, references), Interrupted);
  EXPECT_THROW(bleu.counts(references[0]), Interrupted);
}

}  // namespace
}  // namespace mh
