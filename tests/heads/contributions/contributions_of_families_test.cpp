// Parts add up in every small model among the goldens that predicts words or gives labels: every family that is read.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "multihead/folders/model_folder.h"
#include "multihead/heads/contributions/heads_contributions.h"
#include "multihead/heads/sites/inspected_texts.h"
#include "multihead/models/encoder_decoder.h"
#include "tests/support/goldens.h"

namespace mh {
namespace {

TEST(ContributionsOfFamilies, AddUpAndSoDoTheTokensThatHeadsRead) {
  int models = 0;
  for (const std::filesystem::path& path : golden_models()) {
    SCOPED_TRACE(path.string());
    const ModelFolder folder = load_model_folder(path);
    if (folder.gives_vectors_alone()) continue;
    AnswerText asked{.text = {.ids = {5, 3, 7, 11, 2, 1}}, .predicting = 2};
    if (translates(folder)) asked.target.ids = {2, 9, 4, 8};
    asked.answer = PatchAnswer{.text = "answer", .token = folder.labels ? 0 : 6};
    bool remarked = false;
    const ContributionReport found = heads_contributions(
        folder, asked, {.sources = 1000, .remark = [&](const std::string&) { remarked = true; }});
    EXPECT_LT(found.error(), 1e-5);
    EXPECT_GT(found.magnitude, 0);
    EXPECT_FALSE(remarked) << "a head's tokens do not add up to its part";
    ++models;
  }
  EXPECT_GT(models, 100);
}

}  // namespace
}  // namespace mh
