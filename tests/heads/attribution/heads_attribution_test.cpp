// AttributionReport of small random models of each family, beside calculations from their weights and passes with changed values.
#include "multihead/heads/attribution/heads_attribution.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/heads/attribution/explained_text.h"
#include "multihead/heads/attribution/gradient_methods.h"
#include "multihead/heads/attribution/layer_mixes.h"
#include "multihead/heads/attribution/value_zeroing.h"
#include "multihead/heads/sites/inspected_texts.h"
#include "multihead/nn/attention_place.h"
#include "tests/heads/attribution/attribution_families.h"
#include "tests/support/goldens.h"

namespace mh {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

const std::string kAttributionText = "two dogs see the park";

struct AttributionCase {
  const char* name;
  ModelFolder (*folder)();
};

class AttributionOfFamilies : public testing::TestWithParam<AttributionCase> {
 protected:
  const ModelFolder folder_ = GetParam().folder();
  /// A translator's translation is given: a greedy one of random weights has any length.
  AttributionOptions asked(AttributionOptions options = {}) const {
    if (translates(folder_)) options.target = "a cat sees the park";
    return options;
  }
  const ExplainedText text_{folder_, kAttributionText, asked()};
};

/// Of models that explain the probability of a word.
class AttributionOfWords : public AttributionOfFamilies {};

double sum_of(const std::vector<double>& numbers) {
  return std::accumulate(numbers.begin(), numbers.end(), 0.0);
}

/// F of the text when values at sites are changed.
double score_with(const ExplainedText& text, Sites& sites) {
  const std::vector<std::vector<int32_t>> one = {text.ids()};
  return static_cast<double>(ExplainedPass(text, one, {.sites = &sites}).scores().value()(0, 0));
}

SiteValues kept_values(const ExplainedText& text, const std::vector<std::string>& patterns) {
  SiteValues kept;
  for (const std::string& pattern : patterns) kept.keep(pattern);
  score_with(text, kept);
  return kept;
}

TEST_P(AttributionOfFamilies, SharesSumToOne) {
  const AttributionReport found = heads_attribution(folder_, kAttributionText, asked());
  ASSERT_EQ(found.methods.size(), 8u);
  for (const MethodScores& one : found.methods) ASSERT_EQ(one.scores.size(), found.tokens.size());
  const double sides = found.tokens.back().side == TokenSide::kTarget ? 2 : 1;
  EXPECT_NEAR(sum_of(found.of(AttributionMethod::kAttention)), sides, 1e-5);
  EXPECT_NEAR(sum_of(found.of(AttributionMethod::kNormWeighted)), sides, 1e-12);
  EXPECT_NEAR(sum_of(found.of(AttributionMethod::kRollout)), 1, 1e-5);
  EXPECT_NEAR(sum_of(found.of(AttributionMethod::kValueZeroing)), 1, 1e-12);
  for (const double flow : found.of(AttributionMethod::kFlow)) {
    EXPECT_GE(flow, 0);
    EXPECT_LE(flow, 1 + 1e-6);
  }
  // A flow to one token alone is at least what rollout sends there beside the others.
  for (size_t i = 0; i < found.tokens.size(); ++i)
    EXPECT_GE(found.of(AttributionMethod::kFlow)[i], found.of(AttributionMethod::kRollout)[i] - 1e-6);
}

TEST_P(AttributionOfFamilies, NormsAreThoseOfWhatEachKeyAdds) {
  // What all keys add together is the sum of the heads' contributions: the pieces whose lengths are measured add up to it.
  const Model& model = *folder_.model;
  SiteValues kept = kept_values(text_, {"*.weights.*", "*_attention.values", "*.contributions.*"});
  const test::WholeMatrices parameters(model);
  const LayerMixes found = norm_weighted(model, kept);
  for (const Model::Attention& attention : model.attentions()) {
    const AttentionPlace place = attention.place;
    const auto layer = static_cast<size_t>(place.layer);
    const DoubleMatrix& shares = place.kind == AttentionKind::kEncoderSelf ? found.encoder[layer].self
                                 : place.kind == AttentionKind::kCross     ? found.decoder[layer].cross
                                                                           : found.decoder[layer].self;
    const ConstMatrixView values = kept.value(attention.name + ".values").view();
    const HeadGeometry& g = model.attention(attention.name).geometry();
    const DoubleMatrix& w_o = parameters.at(attention.name + ".w_o");
    for (int64_t i = 0; i < shares.rows(); ++i) {
      std::vector<double> lengths(static_cast<size_t>(shares.cols())), all(static_cast<size_t>(w_o.cols()));
      for (int64_t j = 0; j < shares.cols(); ++j) {
        double square = 0;
        for (int64_t c = 0; c < w_o.cols(); ++c) {
          double added = 0;
          for (int h = 0; h < g.heads; ++h) {
            const auto a =
                static_cast<double>(kept.kept(weights_site({attention.name, h})).sequence(0)(i, j));
            for (int d = 0; d < g.d_value; ++d)
              added += a * static_cast<double>(values(j, h / (g.heads / g.value_heads) * g.d_value + d)) *
                       w_o(h * g.d_value + d, c);
          }
          square += added * added;
          all[static_cast<size_t>(c)] += added;
        }
        lengths[static_cast<size_t>(j)] = std::sqrt(square);
      }
      for (int64_t j = 0; j < shares.cols(); ++j)
        EXPECT_NEAR(shares(i, j), lengths[static_cast<size_t>(j)] / sum_of(lengths), 1e-9);
      for (int64_t c = 0; c < w_o.cols(); ++c) {
        double contributed = 0;
        for (int h = 0; h < g.heads; ++h)
          contributed +=
              static_cast<double>(kept.value(attention.name + ".contributions." + std::to_string(h))(i, c));
        EXPECT_NEAR(all[static_cast<size_t>(c)], contributed, 1e-4);
      }
    }
  }
}

TEST_P(AttributionOfFamilies, RolloutIsThatOfTheKeptWeights) {
  const SiteValues kept = kept_values(text_, {"*.weights.*"});
  const LayerMixes mixes = mean_weights(*folder_.model, kept);
  for (const std::vector<LayerMix>* stack : {&mixes.encoder, &mixes.decoder})
    for (const LayerMix& layer : *stack)
      for (int64_t i = 0; i < layer.self.rows(); ++i) {
        double sum = 0;
        for (int64_t j = 0; j < layer.self.cols(); ++j) sum += layer.self(i, j);
        EXPECT_NEAR(sum, 1, 1e-6);
      }
  EXPECT_EQ(weighed_rows(text_.rows(), rollout(mixes, Sublayers::kInTurn)),
            heads_attribution(folder_, kAttributionText, asked()).of(AttributionMethod::kRollout));
}

TEST_P(AttributionOfFamilies, GradientTimesInputIsWhatStretchingARowChanges) {
  const std::vector<double> found = gradient_times_input(text_);
  const bool causal = is_causal(folder_);
  const std::string first = causal ? "decoder.embeddings" : "encoder.embeddings";
  SiteValues kept = kept_values(text_, {"*.embeddings"});
  for (size_t token = 0; token < found.size(); ++token) {
    const bool of_target = static_cast<int64_t>(token) >= text_.sources();
    const std::string site = of_target ? "decoder.embeddings" : first;
    const auto row = static_cast<int32_t>(static_cast<int64_t>(token) - (of_target ? text_.sources() : 0));
    constexpr double kStep = 0.002;
    std::vector<double> at;
    for (const double factor : {1 + kStep, 1 - kStep}) {
      Tensor numbers = copied(kept.value(site).view().rows_between(row, row + 1));
      for (int64_t c = 0; c < numbers.cols(); ++c) numbers(0, c) *= static_cast<float>(factor);
      SiteValues stretched;
      stretched.replace({.site = site, .position = row, .numbers = std::move(numbers)});
      at.push_back(score_with(text_, stretched));
    }
    EXPECT_NEAR(found[token], (at[0] - at[1]) / (2 * kStep), 5e-3 + 0.01 * std::abs(found[token])) << token;
  }
}

TEST_P(AttributionOfFamilies, IntegratedGradientsAddUpToTheDifference) {
  const auto with_steps = [&](int steps) {
    return heads_attribution(
        folder_, kAttributionText,
        asked(
            {.methods = {AttributionMethod::kIntegratedGradients}, .steps = steps, .max_batch_tokens = 500}));
  };
  const AttributionReport found = with_steps(1000);
  const double difference = found.score - found.replaced_score;
  ASSERT_TRUE(found.completeness_error);
  EXPECT_GT(std::abs(difference), 0.1) << "a difference to speak of";
  EXPECT_LT(std::abs(*found.completeness_error), 0.01 * (1 + std::abs(difference)))
      << "the way has steep parts";
  EXPECT_LT(std::abs(*found.completeness_error), std::abs(*with_steps(2).completeness_error));
  EXPECT_NEAR(sum_of(found.methods[0].scores) - difference, *found.completeness_error, 1e-12);
  for (size_t i = 0; i < found.tokens.size(); ++i) {
    if (found.tokens[i].kept) {
      EXPECT_EQ(found.methods[0].scores[i], 0) << "its row is the same at both ends";
    }
  }
}

TEST_P(AttributionOfFamilies, ZeroedValuesAreThoseOfOneLayerAtATime) {
  const LayerMixes found = zeroed_values(text_, 2048);

  for (const char* stack : {"encoder", "decoder"}) {
    const std::vector<LayerMix>& layers = std::string(stack) == "encoder" ? found.encoder : found.decoder;
    for (size_t l = 0; l < layers.size(); ++l) {
      const std::string layer = std::string(stack) + "." + std::to_string(l);
      const Tensor before = copied(kept_values(text_, {layer + ".output"}).value(layer + ".output").view());
      DoubleMatrix turned(layers[l].self.rows(), layers[l].self.cols() + layers[l].cross.cols());
      for (int64_t j = 0; j < turned.cols(); ++j) {
        const bool cross = j >= layers[l].self.cols();
        const std::string site = layer + (cross ? ".cross_attention" : ".self_attention") + ".values";
        const Tensor zeros(1, kept_values(text_, {site}).value(site).cols());
        SiteValues zeroed;
        zeroed.replace({.site = site,
                        .position = static_cast<int32_t>(cross ? j - layers[l].self.cols() : j),
                        .numbers = copied(zeros.view())});
        zeroed.keep(layer + ".output");
        score_with(text_, zeroed);
        const ConstMatrixView after = zeroed.value(layer + ".output").view();
        for (int64_t i = 0; i < after.rows; ++i) {
          double product = 0, of_a = 0, of_b = 0;
          for (int64_t c = 0; c < after.cols; ++c) {
            product += static_cast<double>(before(i, c)) * static_cast<double>(after(i, c));
            of_a += static_cast<double>(before(i, c)) * static_cast<double>(before(i, c));
            of_b += static_cast<double>(after(i, c)) * static_cast<double>(after(i, c));
          }
          turned(i, j) = 1 - product / std::sqrt(of_a * of_b);
        }
      }
      divide_rows_by_sums(turned);
      for (int64_t i = 0; i < turned.rows(); ++i)
        for (int64_t j = 0; j < turned.cols(); ++j) {
          const int64_t own = layers[l].self.cols();
          EXPECT_NEAR(j < own ? layers[l].self(i, j) : layers[l].cross(i, j - own), turned(i, j), 1e-4)
              << layer << " " << i << " " << j;
        }
    }
  }
}

TEST_P(AttributionOfFamilies, BatchesChangeNothing) {
  const AttributionReport all = heads_attribution(folder_, kAttributionText, asked()),
                          few = heads_attribution(folder_, kAttributionText, asked({.max_batch_tokens = 1}));
  for (size_t m = 0; m < all.methods.size(); ++m)
    for (size_t i = 0; i < all.tokens.size(); ++i)
      EXPECT_NEAR(all.methods[m].scores[i], few.methods[m].scores[i], 1e-4);
}

TEST_P(AttributionOfWords, AnotherTokenHasItsOwnProbability) {
  const AttributionReport found = heads_attribution(
      folder_, kAttributionText,
      asked({.methods = {AttributionMethod::kRollout}, .position = 1, .target_token = "park"}));
  const AttributionReport other = heads_attribution(
      folder_, kAttributionText,
      asked({.methods = {AttributionMethod::kRollout}, .position = 1, .target_token = "cat"}));
  EXPECT_EQ(found.position, 1);
  EXPECT_NE(found.explained, other.explained);
  EXPECT_NE(found.score, other.score);
  EXPECT_LT(found.score, 0);
  EXPECT_EQ(found.of(AttributionMethod::kRollout), other.of(AttributionMethod::kRollout))
      << "attention does not know what is asked";
}

TEST_P(AttributionOfWords, RefusesTokensThatAreNotThere) {
  EXPECT_THAT([&] { heads_attribution(folder_, kAttributionText, asked({.position = 99})); },
              ThrowsMessage<UsageError>(
                  HasSubstr("there is no token 99 whose probability could be explained; give")));
  EXPECT_THAT([&] { heads_attribution(folder_, kAttributionText, asked({.position = -1})); },
              ThrowsMessage<UsageError>(HasSubstr("there is no token -1")));
  EXPECT_THAT([&] { heads_attribution(folder_, kAttributionText, asked({.target_token = "two dogs"})); },
              ThrowsMessage<UsageError>(HasSubstr(" tokens of this vocabulary; name one")));
  EXPECT_THAT([&] { heads_attribution(folder_, kAttributionText, asked({.target_token = "\u2603"})); },
              ThrowsMessage<UsageError>(HasSubstr("`target_token`: the tokenizer does not know '\u2603'")));
  const std::string with_nul("hor\0se", 6);
  EXPECT_THAT([&] { heads_attribution(folder_, kAttributionText, asked({.target_token = with_nul})); },
              ThrowsMessage<UsageError>(testing::EndsWith("'hor\\u0000se'; take another word")));
  EXPECT_THAT([&] { heads_attribution(folder_, kAttributionText, asked({.steps = 0})); },
              ThrowsMessage<UsageError>(HasSubstr("`steps`: expected an integer from 1 to 100000, got 0")));
  EXPECT_THROW(heads_attribution(folder_, "", asked()), UsageError);
  EXPECT_THROW(heads_attribution(folder_, kAttributionText, asked({.methods = {AttributionMethod::kFlow}}))
                   .of(AttributionMethod::kRollout),
               UsageError);
}

/// The logits of a text's labels, in float32.
std::vector<float> logits_of(const ModelFolder& folder, const std::vector<int32_t>& ids, int64_t row) {
  Tape tape;
  Context context{.tape = tape};
  Batch batch;
  batch.add(ids, 0);
  const Var logits =
      folder.model->label_logits(context, folder.model->read(context, batch.view(), {}), batch.view());
  return {logits.value().row(row), logits.value().row(row) + logits.cols()};
}

TEST(AttributionOfLabels, ExplainsTheLogitThatIsAskedFor) {
  const ModelFolder folder = test::attribution_classifier(LabelRows::kMean, LabelDense());
  for (const char* label : {"joy", "anger", "2"}) {
    const ExplainedText text(folder, kAttributionText, {.label = label});
    const int32_t number = folder.labels->number_of(label);
    EXPECT_EQ(text.known().label, folder.labels->names[static_cast<size_t>(number)]);
    EXPECT_EQ(text.known().explained_id, number);
    EXPECT_EQ(text.known().position, -1);
    EXPECT_NEAR(text.known().score, logits_of(folder, text.ids(), 0)[static_cast<size_t>(number)], 1e-6);
    EXPECT_NEAR(text.known().replaced_score,
                logits_of(folder, text.all_replaced(), 0)[static_cast<size_t>(number)], 1e-6);
  }
  const ExplainedText best(folder, kAttributionText, {});
  const std::vector<float> logits = logits_of(folder, best.ids(), 0);
  EXPECT_EQ(best.known().explained_id, std::max_element(logits.begin(), logits.end()) - logits.begin());
}

TEST(AttributionOfLabels, OfATokenIsItsOwn) {
  for (const ModelFolder& folder : {test::attribution_classifier(LabelRows::kTokens),
                                    test::attribution_labelled_llama(LabelRows::kTokens)}) {
    for (int position = 0; position < 3; ++position) {
      const ExplainedText text(folder, kAttributionText, {.position = position, .label = "fear"});
      EXPECT_EQ(text.known().position, position);
      EXPECT_NEAR(text.known().score, logits_of(folder, text.ids(), position)[2], 1e-6);
    }
  }
}

// A text that ends with a padding token is read before it, but an explanation asks what the row says that was read.
TEST(AttributionOfLabels, ReadsTheSameRowWhereThePaddingTokenReplacesTheLast) {
  const ModelFolder folder =
      test::attribution_labelled_llama(LabelRows::kLast, load_tokenizer(kGoldens / "labels" / "gpt2_words"));
  const ExplainedText text(folder, kAttributionText, {.label = "fear"});
  const std::vector<std::vector<int32_t>> one = {
      text.replaced([&](size_t i) { return i + 1 == text.ids().size(); })};
  EXPECT_EQ(one[0].back(), folder.model->facts().pad_id);
  Tape tape;
  Context context{.tape = tape};
  const Batch batch(one);
  const Var states = folder.model->read(context, batch.view(), {});
  Sequences whole = batch.view();
  whole.ids = text.ids();
  const double score = text.scores(one, 1000)[0];
  EXPECT_NEAR(score, folder.model->label_logits(context, states, whole).value()(0, 2), 1e-6);
  EXPECT_GT(std::abs(score - static_cast<double>(logits_of(folder, one[0], 0)[2])), 1e-3);
}

TEST(AttributionOfLabels, ThatIsNotThereIsAnError) {
  const ModelFolder texts = test::attribution_classifier(LabelRows::kFirst),
                    tokens = test::attribution_classifier(LabelRows::kTokens);
  const auto explain = [](const ModelFolder& folder, const AttributionOptions& options) {
    return [&folder, options] { heads_attribution(folder, kAttributionText, options); };
  };
  EXPECT_THAT(explain(texts, {.label = "love"}),
              ThrowsMessage<UsageError>("there is no label 'love'; there are joy, anger, fear"));
  EXPECT_THAT(explain(texts, {.position = 1}),
              ThrowsMessage<UsageError>(HasSubstr("labels to whole texts: leave the token out")));
  EXPECT_THAT(explain(tokens, {.position = 99}),
              ThrowsMessage<UsageError>(HasSubstr("no token 99 whose label could be explained")));
  EXPECT_THAT(explain(texts, {.target_token = "dogs"}),
              ThrowsMessage<UsageError>(HasSubstr("leave the other token out")));
  const ModelFolder words = test::attribution_encoder();
  EXPECT_THAT(explain(words, {.label = "joy"}),
              ThrowsMessage<UsageError>("this model gives no labels; leave 'joy' out"));
}

AttributionCase word_case(int number) {
  const AttributionCase all[] = {
      {"Encoder", [] { return test::attribution_encoder(); }},
      {"Llama", test::attribution_llama},
      {"TranslatorPost", [] { return test::attribution_translator(); }},
      {"TranslatorPre", [] { return test::attribution_translator(NormPlacement::kPre); }}};
  return all[number];
}

const auto kCaseName = [](const auto& each) { return std::string(each.param.name); };
const auto kWordCases = testing::Values(word_case(0), word_case(1), word_case(2), word_case(3));
INSTANTIATE_TEST_SUITE_P(Families, AttributionOfWords, kWordCases, kCaseName);
INSTANTIATE_TEST_SUITE_P(Families, AttributionOfFamilies, kWordCases, kCaseName);
INSTANTIATE_TEST_SUITE_P(
    Classifiers, AttributionOfFamilies,
    testing::Values(
        AttributionCase{"Pooled", [] { return test::attribution_classifier(LabelRows::kPooled); }},
        AttributionCase{"First",
                        [] { return test::attribution_classifier(LabelRows::kFirst, LabelDense()); }},
        AttributionCase{"Mean",
                        [] {
                          return test::attribution_classifier(
                              LabelRows::kMean,
                              LabelDense{.activation = Activation::kGelu, .norm = NormConfig()});
                        }},
        AttributionCase{"Tokens", [] { return test::attribution_classifier(LabelRows::kTokens); }},
        AttributionCase{"DecoderLast", [] { return test::attribution_labelled_llama(LabelRows::kLast); }},
        AttributionCase{"DecoderTokens",
                        [] { return test::attribution_labelled_llama(LabelRows::kTokens); }}),
    kCaseName);

}  // namespace
}  // namespace mh
