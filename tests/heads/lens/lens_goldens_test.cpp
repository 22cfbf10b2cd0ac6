// The lens beside what transformers computes in double precision (tests/oracles/lens_goldens.py).
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "multihead/base/file.h"
#include "multihead/heads/lens/heads_lens.h"
#include "multihead/text/tokenizer_parts.h"
#include "tests/support/places.h"

namespace mh {
namespace {

using nlohmann::json;

json lens_goldens() {
  return json::parse(read_file(std::filesystem::path(goldens_folder()) / "lens.json"));
}

constexpr int32_t kNumbered = 300;  // more than the vocabulary of any of these models

/// Words w0, w1, ... of these numbers; mask: the one that is the mask token.
Tokenizer numbered_tokenizer(int32_t mask) {
  TokenizerParts parts;
  parts.model.kind = TokenModel::Kind::kWordLevel;
  for (int32_t id = 0; id < kNumbered; ++id)
    parts.model.vocabulary.emplace_back(id == mask ? "[MASK]" : "w" + std::to_string(id), id);
  parts.model.unknown_token = "w0";
  parts.pre_tokenizers.push_back({.kind = PreTokenizerStep::Kind::kWhitespaceSplit});
  return Tokenizer(std::move(parts));
}

std::string numbered_text(const json& ids, int32_t mask) {
  std::string text;
  for (const int32_t id : ids)
    text += (text.empty() ? "" : " ") + (id == mask ? std::string("[MASK]") : "w" + std::to_string(id));
  return text;
}

void expect_golden_reading(const LensReading& reading, const json& golden) {
  constexpr double kWithin = 1e-5;
  for (size_t i = 0; i < golden["best"].size(); ++i) {
    EXPECT_EQ(reading.best[i].id, golden["best"][i]);
    EXPECT_NEAR(std::log(reading.best[i].score), golden["log_p"][i], kWithin);
  }
  EXPECT_NEAR(*reading.entropy, golden["entropy"], kWithin);
  EXPECT_NEAR(*reading.divergence, golden["divergence"], kWithin);
  EXPECT_EQ(reading.predicted->rank, golden["predicted"]);
  EXPECT_EQ(reading.actual.has_value(), !golden["actual"].is_null());
  if (reading.actual) {
    EXPECT_EQ(reading.actual->rank, golden["actual"]);
  }
}

TEST(LensGoldens, WordsAndLabelsAreThoseOfTransformers) {
  const json goldens = lens_goldens();
  EXPECT_EQ(goldens["words"].size(), 12u);
  for (const json& one : goldens["words"]) {
    SCOPED_TRACE(one["model"]);
    ModelFolder folder =
        load_model_folder(std::filesystem::path(goldens_folder()) / one["model"].get<std::string>());
    const int32_t mask = one.value("mask", -1);
    folder.tokenizer = numbered_tokenizer(mask);
    json ids = one["ids"];
    const bool translates = one.contains("target");
    if (translates) ids.erase(ids.size() - 1);  // the end token, which every translator's source gets
    const LensReport lens = heads_lens(folder, numbered_text(ids, mask),
                                       {.target = translates ? numbered_text(one["target"], -1) : "",
                                        .sublayers = one["sublayers"].get<bool>(),
                                        .words = 3});
    const json& places = one["places"];
    ASSERT_EQ(lens.places.size(), places.size());
    for (size_t place = 0; place < lens.places.size(); ++place) {
      EXPECT_EQ(lens.places[place].site, places[place]["site"]);
      SCOPED_TRACE(lens.places[place].site);
      const json& readings = places[place]["readings"];
      ASSERT_EQ(lens.positions.size(), readings.size());
      for (size_t i = 0; i < readings.size(); ++i) expect_golden_reading(lens.at(place, i), readings[i]);
    }
  }
}

TEST(LensGoldens, CosinesAreThoseOfTransformers) {
  const json goldens = lens_goldens();
  for (const json& one : goldens["vectors"]) {
    const SentenceModel model =
        load_sentence_model(std::filesystem::path(goldens_folder()) / one["model"].get<std::string>());
    const LensReport lens = heads_lens(model, one["text"], one["second"]);
    ASSERT_EQ(lens.places.size(), one["places"].size());
    for (size_t place = 0; place < lens.places.size(); ++place) {
      const json& golden = one["places"][place];
      EXPECT_EQ(lens.places[place].site, golden["site"]);
      EXPECT_NEAR(lens.cosines[place].own, golden["own"], 1e-5);
      EXPECT_NEAR(*lens.cosines[place].second, golden["second"], 1e-5);
    }
    EXPECT_NEAR(lens.cosines.back().own, 1, 1e-6);
  }
}

}  // namespace
}  // namespace mh
