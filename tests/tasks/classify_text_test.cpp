// Labels of texts and of tokens: what pipelines of transformers say with the same small models (tests/oracles/label_goldens.py).
#include "multihead/tasks/classify_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "multihead/base/error.h"
#include "multihead/base/file.h"
#include "multihead/folders/model_folder.h"
#include "multihead/heads/sites/site_values.h"
#include "multihead/models/label_head.h"
#include "tests/support/goldens.h"
#include "tests/support/scratch_folder.h"

namespace mh {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

class ClassifyText : public testing::TestWithParam<const char*> {
 protected:
  ModelFolder folder = load_model_folder(kGoldens / "labels" / GetParam());
  nlohmann::json golden =
      nlohmann::json::parse(read_file(kGoldens / "labels" / (GetParam() + std::string(".texts.json"))));
  std::vector<std::string> column(const char* key) const {
    std::vector<std::string> all;
    for (const auto& row : golden) all.push_back(row[key]);
    return all;
  }
  void expect_scores(const std::vector<LabelledText>& found, const char* key) const {
    ASSERT_EQ(found.size(), golden.size());
    for (size_t i = 0; i < found.size(); ++i) {
      ASSERT_EQ(found[i].rows.size(), 1u);
      EXPECT_TRUE(found[i].tokens.empty());
      const std::vector<double>& scores = found[i].rows[0].scores;
      ASSERT_EQ(scores.size(), golden[i][key].size());
      for (size_t k = 0; k < scores.size(); ++k)
        EXPECT_NEAR(scores[k], golden[i][key][k].get<double>(), 2e-6) << key << " " << i;
    }
  }
};

TEST_P(ClassifyText, ScoresAreThoseOfPipelines) {
  for (const int64_t batch : {1, 4096}) {
    expect_scores(classify_text(folder, column("text"), {.max_batch_tokens = batch}), "of_text");
    expect_scores(classify_text(folder, column("text"), {.pairs = column("pair"), .max_batch_tokens = batch}),
                  "of_pair");
  }
}

TEST_P(ClassifyText, CallsItsSite) {
  for (const std::string& text : column("text")) {
    SiteValues seen;
    const std::string site = folder.model->label_head()->site().name();
    seen.keep(site);
    const LabelRow found = classify_text(folder, {text}, {.sites = &seen})[0].rows[0];
    const Tensor& logits = seen.value(site);
    ASSERT_EQ(logits.rows(), 1);
    for (size_t k = 0; k < found.logits.size(); ++k)
      EXPECT_EQ(logits(0, static_cast<int64_t>(k)), found.logits[k]);
  }
}

INSTANTIATE_TEST_SUITE_P(Folders, ClassifyText,
                         testing::Values("bert_pairs", "roberta_texts", "llama_pairs", "bart_pairs"),
                         [](const auto& one) { return std::string(one.param); });

class ClassifyTokens : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Folders, ClassifyTokens, testing::Values("bert_words", "gpt2_words"),
                         [](const auto& one) { return std::string(one.param); });

TEST_P(ClassifyTokens, GivesLabelsToEachTokenOfTheText) {
  const ModelFolder folder = load_model_folder(kGoldens / "labels" / GetParam());
  const std::string text = "the cat sees a house!";
  const auto found = classify_text(folder, {text, "a"});
  ASSERT_EQ(found.size(), 2u);
  ASSERT_EQ(found[0].rows.size(), found[0].tokens.size());
  ASSERT_EQ(found[1].tokens.size(), 1u);
  EXPECT_EQ(found[1].tokens[0].characters, std::pair(0, 1));
  std::string joined;
  for (const LabelledToken& token : found[0].tokens)
    joined += text.substr(static_cast<size_t>(token.characters.first),
                          static_cast<size_t>(token.characters.second - token.characters.first));
  std::erase(joined, ' ');
  EXPECT_EQ(joined, "thecatseesahouse!");
  const nlohmann::json golden =
      nlohmann::json::parse(read_file(kGoldens / "labels" / (GetParam() + std::string(".texts.json"))));
  ASSERT_EQ(found[0].rows.size(), golden.size());
  for (size_t t = 0; t < found[0].rows.size(); ++t) {
    const LabelRow& row = found[0].rows[t];
    EXPECT_EQ(folder.labels->names[static_cast<size_t>(row.best_first()[0])], golden[t]["entity"]);
    EXPECT_NEAR(row.scores[static_cast<size_t>(row.best_first()[0])], golden[t]["score"].get<double>(), 2e-6);
  }
  EXPECT_THAT([&] { classify_text(folder, {"a"}, {.pairs = {"b"}}); },
              ThrowsMessage<UsageError>(HasSubstr("reads one text at a time; leave the second texts out")));
}

TEST(ClassifyTextErrors, AreSaidInALine) {
  EXPECT_THAT([] { classify_text(load_model_folder(kGoldens / "fill" / "bert"), {"a"}); },
              ThrowsMessage<UsageError>(
                  HasSubstr("holds a bert model without a layer of labels; take one that was saved as")));
  const ModelFolder folder = load_model_folder(kGoldens / "labels" / "bert_pairs");
  EXPECT_THAT([&] { classify_text(folder, {"\xff"}); }, ThrowsMessage<FormatError>(HasSubstr("text 1")));
  EXPECT_THAT([&] { classify_text(folder, {"a"}, {.pairs = {"a", "b"}}); }, testing::Throws<UsageError>());
  std::string many;
  for (int i = 0; i < 40; ++i) many += "a ";
  EXPECT_THAT([&] { classify_text(folder, {many}, {.strict = true}); }, testing::Throws<FormatError>());
  std::string told;
  classify_text(folder, {many}, {.remark = [&](const std::string& line) { told += line; }});
  EXPECT_THAT(told, HasSubstr("1 text"));
  EXPECT_TRUE(classify_text(folder, {}).empty());
}

}  // namespace
}  // namespace mh
