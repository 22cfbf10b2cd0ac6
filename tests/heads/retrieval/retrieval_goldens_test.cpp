// Scores, weights and limited heads beside transformers' weights and masks of single heads in double precision
// (tests/oracles/retrieval_goldens.py).
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "multihead/base/file.h"
#include "multihead/folders/model_folder.h"
#include "multihead/heads/retrieval/heads_retrieval.h"
#include "tests/heads/retrieval/numbered_words.h"
#include "tests/support/places.h"

namespace mh {
namespace {

using nlohmann::json;

RetrievalTexts golden_texts(const json& one) {
  RetrievalTexts texts;
  texts.filler = test::numbered_words(one["filler"]);
  texts.needles.clear();
  for (const json& needle : one["needles"])
    texts.needles.push_back({.sentence = test::numbered_words(needle[0]),
                             .question = test::numbered_words(needle[1]),
                             .answer = test::numbered_words(needle[2])});
  return texts;
}

TEST(RetrievalGoldens, AreThoseOfTransformers) {
  const json goldens = json::parse(read_file(std::filesystem::path(goldens_folder()) / "retrieval.json"));
  EXPECT_EQ(goldens["models"].size(), 2u);
  constexpr double kWithin = 1e-4;
  for (const json& one : goldens["models"]) {
    SCOPED_TRACE(one["model"]);
    ModelFolder folder =
        load_model_folder(std::filesystem::path(goldens_folder()) / one["model"].get<std::string>());
    folder.tokenizer = test::numbered_tokenizer(37);
    for (const LimitedRows limit : {LimitedRows::kAll, LimitedRows::kAnswer}) {
      const RetrievalReport found = heads_retrieval(folder, golden_texts(one),
                                                    {.lengths = goldens["lengths"],
                                                     .depths = goldens["depths"],
                                                     .limit = limit,
                                                     .sinks = goldens["sinks"],
                                                     .window = goldens["window"],
                                                     .text_tokens = goldens["text_tokens"]});
      ASSERT_EQ(found.trials.size(), one["log_probabilities"].size());
      for (size_t t = 0; t < found.trials.size(); ++t)
        EXPECT_NEAR(found.trials[t].log_probability, one["log_probabilities"][t], kWithin);
      const json& falls = one[limit == LimitedRows::kAll ? "falls" : "answer_falls"];
      ASSERT_EQ(found.heads.size(), one["scores"].size());
      ASSERT_EQ(found.needs.size(), found.heads.size());
      for (size_t h = 0; h < found.heads.size(); ++h) {
        SCOPED_TRACE(found.heads[h].head.name());
        EXPECT_NEAR(found.heads[h].score.mean, one["scores"][h], 1e-7);
        EXPECT_NEAR(found.heads[h].weight.mean, one["weights"][h], kWithin);
        EXPECT_NEAR(found.needs[h].fall.mean, falls[h], kWithin);
        EXPECT_NEAR(found.needs[h].loss_rise->mean, one["loss_rises"][h], kWithin);
      }
      EXPECT_NEAR(*found.text_loss, one["text_loss"], kWithin);
    }
  }
}

}  // namespace
}  // namespace mh
