// Finite weights that overflow: no search, score or perplexity is given; all say the same.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/evaluate/perplexity.h"
#include "multihead/evaluate/score.h"
#include "multihead/folders/model_folder.h"
#include "multihead/generate/align.h"
#include "multihead/generate/generate.h"
#include "multihead/generate/translate.h"
#include "multihead/models/encoder_decoder.h"
#include "tests/generate/generate_golden.h"
#include "tests/support/overflow.h"
#include "tests/support/small_model.h"

namespace mh {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

template <class Call>
void expect_not_finite(Call&& call) {
  EXPECT_THAT(call, ThrowsMessage<Error>(HasSubstr("are not finite numbers; its weights may be damaged")));
}

TEST(NotFinite, OfATranslator) {
  EncoderDecoder model(small_shape().config());
  model.initialise(19);
  const auto sources = random_sources(1, {5, 2, 7});
  std::vector<std::vector<int32_t>> targets = random_sources(2, {3, 6, 4});
  for (auto& target : targets) target.pop_back();
  const Batch batch(sources);
  Tape tape;
  EXPECT_NO_THROW(score(model, sources, targets));
  EXPECT_NO_THROW(align(model, {.tape = tape}, batch.view(), targets));
  for (const float sign : {-1.0f, 1.0f}) {
    test::overflow_scores(model, "encoder.1.self_attention", sign);
    expect_not_finite([&] { score(model, sources, targets); });
    expect_not_finite([&] { translate(model, sources); });
    expect_not_finite([&] { align(model, {.tape = tape}, batch.view(), targets); });
    // Of one sentence alone, and with every token forced.
    expect_not_finite([&] { score(model, std::span(sources).first(1), std::span(targets).first(1)); });
    expect_not_finite([&] { translate(model, sources, {.search = {.max_length = 9}}, targets); });
  }
}

TEST(NotFinite, OfACausalModel) {
  const ModelFolder folder = load_model_folder(test::generate_folder());
  const LanguageModel& model = folder.language_model();
  const std::vector<std::vector<int32_t>> texts{{3, 7, 5, 11}, {2, 9}}, pair{{4, 5}};
  EXPECT_NO_THROW(score_windows(model, texts));
  for (const float sign : {-1.0f, 1.0f}) {
    test::overflow_scores(*folder.model, "decoder.0.self_attention", sign);
    expect_not_finite([&] { score_windows(model, texts); });
    expect_not_finite([&] { score_windows(model, pair); });  // the token that is read sees itself alone
    for (const NextToken next : {NextToken::kGreedy, NextToken::kSample, NextToken::kBeam})
      expect_not_finite([&] { generate(model, texts, {.next_token = next, .max_new_tokens = 3}); });
  }
}

TEST(NotFinite, OfAPerplexity) {
  const std::vector<std::vector<float>> likely{{-1, -2}, {-3}}, unlikely{{-1e4f, -2}, {-3}};
  EXPECT_NEAR(perplexity(likely), std::exp(2), 1e-9);
  EXPECT_THAT([&] { perplexity(unlikely); },
              ThrowsMessage<Error>(HasSubstr("the perplexity is beyond the largest number")));
}

}  // namespace
}  // namespace mh
