// What is explained of each family: which tokens are read, which is asked for, and what cannot be asked.
#include "multihead/heads/attribution/explained_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "multihead/base/error.h"
#include "tests/heads/attribution/attribution_families.h"

namespace mh {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

const std::string kExplainedText = "two dogs see the park";

double total_of(const std::vector<double>& numbers) {
  return std::accumulate(numbers.begin(), numbers.end(), 0.0);
}

TEST(Attribution, OfACausalModelReadsWhatStandsBeforeTheToken) {
  const ModelFolder folder = test::attribution_llama();
  const AttributionReport last = heads_attribution(folder, kExplainedText),
                          first = heads_attribution(folder, kExplainedText, {.position = 1});
  EXPECT_EQ(first.tokens.size(), 1u);
  EXPECT_EQ(last.tokens.size(), static_cast<size_t>(last.position));
  EXPECT_EQ(first.of(AttributionMethod::kRollout)[0], 1);
  const AttributionReport next = heads_attribution(folder, kExplainedText, {.target_token = "cat"});
  EXPECT_GT(next.position, last.position) << "what comes behind the text";
  EXPECT_THAT([&] { heads_attribution(folder, kExplainedText, {.position = 0}); },
              ThrowsMessage<UsageError>(HasSubstr("there is no token 0")));
}

TEST(Attribution, AsksForTheLastWordUnlessAnotherIsGiven) {
  const ModelFolder causal = test::attribution_llama(), translator = test::attribution_translator();
  const std::string last = heads_attribution(causal, "a cat sees the park").explained;
  EXPECT_EQ(heads_attribution(causal, "a cat sees the park .").explained, last) << "not the full stop";
  EXPECT_EQ(heads_attribution(translator, "a cat", {.target = "a cat sees the park ."}).explained, last);
  EXPECT_NE(heads_attribution(translator, "a cat", {.target = "a cat sees the dogs ."}).explained, last);
}

TEST(Attribution, OfAnEncoderMasksTheTokenThatIsAskedFor) {
  ModelFolder folder = test::attribution_encoder();
  const AttributionReport plain = heads_attribution(folder, kExplainedText, {.position = 2});
  folder.mask_token = "<unk>";
  const AttributionReport masked = heads_attribution(folder, kExplainedText, {.position = 2});
  EXPECT_NE(plain.tokens[2].token, "<unk>");
  EXPECT_EQ(masked.tokens[2].token, "<unk>");
  EXPECT_TRUE(masked.tokens[2].kept);
  EXPECT_EQ(masked.explained, plain.explained);
  EXPECT_NE(masked.score, plain.score);
  EXPECT_EQ(masked.source_replacement, "<unk>");
}

TEST(Attribution, OfATranslatorHasSourceTokensAndThoseOfTheTargetSoFar) {
  const ModelFolder folder = test::attribution_translator();
  const AttributionReport found = heads_attribution(
      folder, "two dogs run",
      {.methods = {AttributionMethod::kRollout}, .position = 2, .target = "a cat sees dogs"});
  std::vector<TokenSide> sides;
  for (const ReadToken& token : found.tokens) sides.push_back(token.side);
  EXPECT_EQ(std::count(sides.begin(), sides.end(), TokenSide::kTarget), 3) << "the start and two tokens";
  EXPECT_TRUE(std::is_sorted(sides.begin(), sides.end()));
  EXPECT_EQ(found.tokens[found.tokens.size() - 3].token, "<start>");
  EXPECT_TRUE(found.tokens[found.tokens.size() - 3].kept);
  EXPECT_TRUE(found.tokens[found.tokens.size() - 4].kept) << "the source's end";
  EXPECT_EQ(found.translation, "a cat sees dogs");
}

TEST(Attribution, OfTwoTextsExplainsTheCosine) {
  const SentenceModel model = test::attribution_sentences();
  const AttributionReport found = heads_attribution(model, kExplainedText, "a cat sees the dogs");
  EXPECT_EQ(found.position, -1);
  EXPECT_EQ(found.explained, "");
  EXPECT_LE(std::abs(found.score), 1);
  EXPECT_NEAR(total_of(found.of(AttributionMethod::kRollout)), 1, 1e-5);
  EXPECT_NEAR(total_of(found.of(AttributionMethod::kValueZeroing)), 1, 1e-12);
  const AttributionReport same = heads_attribution(model, kExplainedText, kExplainedText);
  EXPECT_NEAR(same.score, 1, 1e-6);
  const AttributionReport many =
      heads_attribution(model, kExplainedText, "a cat sees the dogs",
                        {.methods = {AttributionMethod::kIntegratedGradients}, .steps = 1000});
  EXPECT_NEAR(*many.completeness_error, 0, 1e-4);
}

TEST(Attribution, RowsThatMakeAVectorFollowThePooling) {
  SentenceModel model = test::attribution_sentences();
  const auto rows_with = [&](Pooling pooling) {
    model.poolings = {pooling};
    return ExplainedText(model, kExplainedText, "a cat", {}).rows();
  };
  const std::vector<double> first = rows_with(Pooling::kFirst), last = rows_with(Pooling::kLast),
                            even = rows_with(Pooling::kMean), rising = rows_with(Pooling::kWeightedMean);
  EXPECT_EQ(first[0], 1);
  EXPECT_EQ(last.back(), 1);
  EXPECT_NEAR(even[1], 1.0 / static_cast<double>(even.size()), 1e-15);
  EXPECT_NEAR(rising[2], 3 * rising[0], 1e-15);
  for (const auto& rows : {first, last, even, rising}) EXPECT_NEAR(total_of(rows), 1, 1e-12);
  model.unpooled = 1;
  for (const Pooling pooling :
       {Pooling::kFirst, Pooling::kLast, Pooling::kMean, Pooling::kMax, Pooling::kWeightedMean}) {
    const std::vector<double> behind = rows_with(pooling);
    EXPECT_EQ(behind[0], 0);
    EXPECT_NEAR(total_of(behind), 1, 1e-12);
  }
}

TEST(Attribution, RefusesWhatCannotBeExplained) {
  const ModelFolder silent = test::attribution_encoder(false);
  EXPECT_THAT([&] { heads_attribution(silent, kExplainedText); },
              ThrowsMessage<UsageError>(HasSubstr("this encoder predicts no words; give a second text")));
  const SentenceModel sentences = test::attribution_sentences();
  EXPECT_THAT([&] { heads_attribution(sentences, kExplainedText, "a cat", {.position = 1}); },
              ThrowsMessage<UsageError>(HasSubstr("with two texts their cosine is explained")));
  EXPECT_THAT([&] { heads_attribution(sentences, "", "a cat"); },
              ThrowsMessage<UsageError>(HasSubstr("there is no token to attribute anything to")));
  SentenceModel translator{.folder = test::attribution_translator()};
  translator.longest = 41;
  EXPECT_THAT([&] { heads_attribution(translator, kExplainedText, "a cat"); },
              ThrowsMessage<UsageError>(HasSubstr("a translator has no vector of a text")));
  const ModelFolder causal = test::attribution_llama();
  std::string longest;
  for (int i = 0; i < 41; ++i) longest += "park ";
  EXPECT_THAT(
      [&] {
        heads_attribution(causal, longest, {.methods = {AttributionMethod::kFlow}, .target_token = "cat"});
      },
      ThrowsMessage<UsageError>(HasSubstr("flow takes at most 40 tokens")));
  EXPECT_EQ(heads_attribution(causal, longest, {.target_token = "cat"}).methods.size(), 7u) << "all but flow";
}

}  // namespace
}  // namespace mh
