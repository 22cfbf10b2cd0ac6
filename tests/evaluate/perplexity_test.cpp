// Perplexity by sliding windows: what transformers computes with the same windows.
#include "multihead/evaluate/perplexity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "multihead/base/error.h"
#include "multihead/folders/model_folder.h"
#include "multihead/heads/sites/site_values.h"
#include "multihead/models/encoder_decoder.h"
#include "tests/generate/generate_golden.h"
#include "tests/support/small_model.h"

namespace mh {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::ThrowsMessage;

class Perplexity : public testing::Test {
 protected:
  ModelFolder folder = load_model_folder(test::generate_folder());
  const LanguageModel& model = folder.language_model();
  const nlohmann::json& golden = test::generate_golden()["perplexities"];
  const std::vector<std::vector<int32_t>> texts{golden["ids"]};
};

TEST_F(Perplexity, IsThatOfTransformersForTheSameWindows) {
  for (const auto& expected : golden["found"]) {
    SCOPED_TRACE(expected["context"].dump() + " " + expected["stride"].dump());
    const auto found =
        score_windows(model, texts, {.context = expected["context"], .stride = expected["stride"]});
    const std::vector<double> wanted = expected["log_probabilities"];
    ASSERT_EQ(found[0].size(), wanted.size());
    ASSERT_EQ(found[0].size(), texts[0].size() - 1);
    for (size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(found[0][i], wanted[i], 2e-4) << i;
    EXPECT_NEAR(perplexity(found) / expected["perplexity"].get<double>(), 1, 1e-4);
  }
}

TEST_F(Perplexity, NeitherBatchesNorOtherTextsMatter) {
  const auto& text = texts[0];
  const std::vector<std::vector<int32_t>> all{
      {}, {7}, {text.begin(), text.begin() + 2}, text, {text.begin() + 5, text.begin() + 72}};
  WindowOptions options{.context = 23, .stride = 7};
  const auto expected = score_windows(model, all, options);
  EXPECT_THAT(expected[0], IsEmpty());
  EXPECT_THAT(expected[1], IsEmpty());
  EXPECT_THAT(expected[2], SizeIs(1));
  int64_t done = 0;
  options.progress = [&](int64_t tokens) { done = tokens; };
  for (const int64_t tokens : {1, 61}) {
    options.max_batch_tokens = tokens;
    const auto found = score_windows(model, all, options);
    for (size_t t = 0; t < all.size(); ++t) {
      ASSERT_EQ(found[t].size(), expected[t].size());
      for (size_t i = 0; i < found[t].size(); ++i) EXPECT_NEAR(found[t][i], expected[t][i], 1e-5);
      EXPECT_EQ(done, 1 + std::ssize(text) - 1 + 66);
    }
  }
  SiteValues muted;
  muted.mute("decoder.0.self_attention.0");
  options.sites = &muted;
  EXPECT_NE(perplexity(score_windows(model, all, options)), perplexity(expected));
  EXPECT_TRUE(std::isnan(perplexity({})));
}

TEST_F(Perplexity, RefusesWhatCannotBe) {
  const auto expect_refused = [&](const WindowOptions& options, const char* what) {
    EXPECT_THAT([&] { score_windows(model, texts, options); }, ThrowsMessage<UsageError>(HasSubstr(what)));
  };
  expect_refused({.context = 1}, "`context`: expected 2 to the model's longest 67, got 1");
  expect_refused({.context = 68}, "`context`");
  expect_refused({.context = 9, .stride = 9}, "`stride`: expected 1 to 8");
  expect_refused({.stride = -1}, "`stride`");
  EXPECT_THROW(score_windows(model, std::vector<std::vector<int32_t>>{{1, 999}}), UsageError);
  EncoderDecoder translator(small_shape().config());
  EXPECT_THAT([&] { score_windows(translator, texts); }, ThrowsMessage<UsageError>(HasSubstr("translates")));
}

}  // namespace
}  // namespace mh
