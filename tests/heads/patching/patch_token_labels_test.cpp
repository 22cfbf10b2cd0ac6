// Patching of a classifier of tokens: the decision between two labels of one token.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/folders/model_folder.h"
#include "multihead/heads/patching/heads_patch.h"
#include "multihead/heads/reports/patch_json.h"
#include "multihead/tasks/classify_text.h"
#include "tests/support/places.h"

namespace mh {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

class PatchTokenLabels : public testing::Test {
 protected:
  const ModelFolder folder = load_model_folder(std::filesystem::path(goldens_folder()) / "labels/bert_words");
  const PatchQuestion question{.clean = "the cat sees a house",
                               .corrupt = "two cat sees a house",
                               .answer = "B-PER",
                               .wrong = "O",
                               .position = 3};  // "sees", behind "<s>"

  double decision_of(const std::string& text) const {
    const LabelRow row = classify_text(folder, {text})[0].rows[2];  // without special tokens
    return static_cast<double>(row.logits[1]) - static_cast<double>(row.logits[0]);
  }
};

TEST_F(PatchTokenLabels, ScoresAreTheLogitsOfTheToken) {
  const PatchReport found = heads_patch(folder, question, {.part = PatchedPart::kHeads});
  EXPECT_EQ(found.score, PatchScore::kLogit);
  EXPECT_EQ(found.texts.predicting, 3);
  EXPECT_EQ(found.texts.clean.labels[3], "sees");
  EXPECT_NEAR(found.clean.score(), decision_of(question.clean), 1e-5);
  EXPECT_NEAR(found.corrupt.score(), decision_of(question.corrupt), 1e-5);
  EXPECT_EQ(found.values.size(), 4u);
  const auto report = nlohmann::json::parse(patch_json(found, "bert_words"));
  EXPECT_EQ(report["token"], 3);
  EXPECT_EQ(report["measure"], "logit");
}

// What the last layer gives at the token is all that its labels are made of, and at other tokens nothing of it.
TEST_F(PatchTokenLabels, TheTokensOwnStateDecides) {
  const PatchReport found =
      heads_patch(folder, question, {.part = PatchedPart::kStream, .by_position = true});
  int last = 0;
  for (const PatchedValue& value : found.values) {
    if (value.name != "encoder.1.output") continue;
    ++last;
    EXPECT_NEAR(value.restored, value.place.position == 3 ? 1 : 0, 1e-4) << *value.place.position;
  }
  EXPECT_EQ(last, std::ssize(found.texts.clean.ids));
  // Before the first layer the texts differ at one token alone.
  EXPECT_EQ(found.values[1].name, "encoder.0.input");
  EXPECT_NEAR(found.values[1].restored, 1, 1e-4);
}

TEST_F(PatchTokenLabels, AskForATokenThatIsThere) {
  const auto patch = [&](std::optional<int> position) {
    return [this, position] {
      PatchQuestion other = question;
      other.position = position;
      heads_patch(folder, other);
    };
  };
  EXPECT_THAT(patch(std::nullopt),
              ThrowsMessage<UsageError>(HasSubstr("gives labels to tokens, so name one of 0 to 6")));
  EXPECT_THAT(patch(7), ThrowsMessage<UsageError>(HasSubstr("; there is no token 7")));
  EXPECT_THAT(patch(-1), ThrowsMessage<UsageError>(HasSubstr("; there is no token -1")));
  const ModelFolder of_texts =
      load_model_folder(std::filesystem::path(goldens_folder()) / "labels/bert_pairs");
  PatchQuestion labels = question;
  labels.answer = "neutral", labels.wrong = "entailment";
  EXPECT_THAT([&] { heads_patch(of_texts, labels); },
              ThrowsMessage<UsageError>(HasSubstr("for a classifier of tokens alone")));
}

}  // namespace
}  // namespace mh
