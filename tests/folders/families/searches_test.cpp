// Searches of small translators as their generation_config.json or the call has them, against what transformers finds.
// tests/oracles/search_goldens.py makes the golden.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "multihead/base/file.h"
#include "multihead/folders/model_folder.h"
#include "multihead/generate/translate.h"
#include "multihead/models/encoder_decoder.h"
#include "tests/folders/families/damaged_golden.h"
#include "tests/folders/families/translator_golden.h"
#include "tests/io/hostile.h"
#include "tests/support/places.h"

namespace mh {
namespace {

using nlohmann::json;

void expect_found(const std::vector<std::vector<Hypothesis>>& found, const json& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t s = 0; s < found.size(); ++s) {
    ASSERT_EQ(found[s].size(), expected[s].size()) << s;
    for (size_t i = 0; i < found[s].size(); ++i) {
      EXPECT_EQ(json(found[s][i].tokens), expected[s][i]["tokens"]) << s << ", " << i;
      EXPECT_EQ(found[s][i].ended, expected[s][i]["ended"].get<bool>()) << s << ", " << i;
      if (expected[s][i].contains("score")) {
        const auto score = expected[s][i]["score"].get<double>();
        EXPECT_NEAR(found[s][i].score, score, std::max(1e-4, 5e-6 * std::abs(score))) << s << ", " << i;
      }
    }
  }
}

TEST(TranslatorSearches, AreThoseOfTransformersWithAnyGenerationConfig) {
  const std::filesystem::path goldens = goldens_folder();
  int cases = 0;
  for (const json& one : json::parse(read_file(goldens / "bart" / "searches.json"))) {
    const std::filesystem::path name = one["folder"].get<std::string>();
    const int beam = one["beams"];
    SCOPED_TRACE(name.string() + ", " + one["name"].get<std::string>() + ", beam " + std::to_string(beam));
    const test::TranslatorGolden golden(name.parent_path().string(), name.filename().string());
    const test::DamagedGolden changed(name.parent_path().string(), name.filename().string());
    test::edit_json(changed.folder / "generation_config.json", [&](json& config) {
      config.update({{"forced_eos_token_id", nullptr}, {"max_length", 16}, {"num_beams", beam}});
      config.update(one["options"]);
    });
    const ModelFolder folder = load_model_folder(changed.folder);
    EXPECT_EQ(folder.generation_remark, "");
    TranslateOptions options{.search = {.n_best = beam}};
    folder.generation.complete(options.search);
    const std::span sources = std::span(golden.sources).first(one["found"].size());
    expect_found(translate(folder.translator(), sources, options), one["found"]);
    ++cases;
  }
  EXPECT_EQ(cases, 325);
}

TEST(TranslatorSearches, TheFolderSaysWhichNGramsMayRepeatUnlessTheCallDoes) {
  const test::DamagedGolden folder("bart", "plain");
  const auto with = [&](json value) {
    test::edit_json(folder.folder / "generation_config.json",
                    [&](json& config) { config["no_repeat_ngram_size"] = std::move(value); });
    return load_model_folder(folder.folder);
  };
  const ModelFolder three = with(3);
  EXPECT_EQ(three.generation_remark, "");
  SearchOptions usual, own{.no_repeat_ngram = 0};
  three.generation.complete(usual);
  three.generation.complete(own);
  EXPECT_EQ(usual.no_repeat_ngram, 3);
  EXPECT_EQ(own.no_repeat_ngram, 0);
  EXPECT_EQ(with(nullptr).generation.no_repeat_ngram, std::nullopt);
  for (const json& wrong : {json(-1), json(2.5), json("3"), json(uint64_t{1} << 40)}) {
    test::expect_one_line_error([&] { with(wrong); }, "no_repeat_ngram_size: expected", wrong.dump());
  }
}

}  // namespace
}  // namespace mh
