#include "multihead/heads/contributions/heads_contributions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/heads/sites/site_values.h"
#include "multihead/models/label_head.h"
#include "multihead/nn/stack_config.h"
#include "tests/heads/attribution/attribution_families.h"
#include "tests/heads/patching/patch_families.h"

namespace mh {
namespace {

using namespace test;
using testing::HasSubstr;
using testing::ThrowsMessage;

const std::string kExplainedLine = "two dogs see the park";

struct Explained {
  const char* name;
  std::function<ModelFolder()> folder;
  AnswerQuestion question;
  bool affine_end = true;  // whether what stands behind the last states is affine without holding anything
};

const AnswerQuestion kNext{.text = "two dogs see the", .answer = "park", .wrong = "small"};
const AnswerQuestion kHidden{.text = "two dogs [MASK] the park", .answer = "see", .wrong = "run"};
const AnswerQuestion kGerman{.text = "two dogs see the", .answer = "park", .prefix = "the cats"};
const AnswerQuestion kJoy{.text = kExplainedLine, .answer = "joy"};
const AnswerQuestion kJoyNotFear{.text = kExplainedLine, .answer = "joy", .wrong = "fear", .position = 2};

ModelFolder capped_folder() {
  CausalConfig config = gpt_config();
  config.stack.norm = {.kind = NormKind::kRms, .placement = NormPlacement::kPreAndOutput};
  config.logit_soft_cap = 3.0f;
  return folder_of(family_causal(config, 3).model, "gemma2");
}
ModelFolder parallel_folder() {
  CausalConfig config = gpt_config();
  config.stack.order = SublayerOrder::kParallel;
  return folder_of(family_causal(config, 5).model, "gpt_neox");
}
ModelFolder output_normed_folder() {
  CausalConfig config = gpt_config();
  config.stack.norm.placement = NormPlacement::kOutput;
  return folder_of(family_causal(config, 7).model, "olmo2");
}

std::vector<Explained> explained_models() {
  const LabelDense gelu{.activation = Activation::kGelu, .norm = NormConfig{}};
  return {
      {"causal", causal_folder, kNext},
      {"grouped", llama_folder, kNext},
      {"parallel", parallel_folder, kNext},
      {"output_norms", output_normed_folder, kNext},
      {"soft_cap", capped_folder, kNext, false},
      {"post_norm", [] { return bert_folder(); }, kHidden, false},
      {"modern_bert", modern_bert_folder, kHidden, false},
      {"translator", translator_folder, kGerman},
      {"pre_norm_translator",
       [] { return attribution_translator(NormPlacement::kPre); },
       {.text = kExplainedLine, .prefix = "a cat"}},
      {"labels", [] { return attribution_classifier(LabelRows::kFirst); }, kJoy},
      {"labels_of_means", [] { return attribution_classifier(LabelRows::kMean); }, kJoy},
      {"pooled_labels", [] { return attribution_classifier(LabelRows::kPooled); }, kJoy, false},
      {"dense_labels", [gelu] { return attribution_classifier(LabelRows::kFirst, gelu); }, kJoy, false},
      {"token_labels", [] { return attribution_classifier(LabelRows::kTokens); }, kJoyNotFear},
      {"decoder_labels", [] { return attribution_labelled_llama(LabelRows::kLast); }, kJoy},
  };
}

class Contributions : public testing::TestWithParam<Explained> {
 protected:
  const ModelFolder folder_ = GetParam().folder();
  const ContributionReport report_ = heads_contributions(folder_, GetParam().question);

  /// F by a whole pass.
  double score(Sites* sites) const {
    const AnswerText& asked = report_.asked;
    Tape tape;
    Context context{.tape = tape, .sites = sites};
    Batch text, target;
    text.add(asked.text.ids, 0, asked.text.types);
    if (!asked.target.ids.empty()) target.add(asked.target.ids, 0);
    const Batch& last = asked.target.ids.empty() ? text : target;
    const Var states =
        folder_.model->read(context, text.view(), asked.target.ids.empty() ? Sequences() : target.view());
    const bool labels = folder_.labels.has_value();
    const ConstMatrixView logits = (labels ? folder_.model->label_logits(context, states, text.view())
                                           : folder_.model->logits(context, states, last.view()))
                                       .value();
    const int64_t row =
        labels ? folder_.model->label_head()->row(text.ragged, 0, asked.predicting) : asked.predicting;
    const auto logit = [&](const std::optional<PatchAnswer>& answer) {
      return answer ? static_cast<double>(logits(row, *answer->token)) : 0.0;
    };
    return logit(asked.answer) - logit(asked.wrong);
  }
};

INSTANTIATE_TEST_SUITE_P(Models, Contributions, testing::ValuesIn(explained_models()),
                         [](const auto& of) { return of.param.name; });

TEST_P(Contributions, AddUpToTheScore) {
  EXPECT_NEAR(report_.score, score(nullptr), 2e-5 * std::max(1.0, std::abs(report_.score)));
  EXPECT_LT(report_.error(), 2e-6);
  EXPECT_GT(report_.magnitude, 0.1);
  size_t heads = 0;
  for (const Contribution& part : report_.parts) {
    if (part.head) ++heads;
    if (part.kind == ContributionKind::kOutput) continue;
    ASSERT_EQ(part.positions.size(), report_.position_labels().size()) << part.name;
  }
  size_t expected = 0;
  const std::string stack = folder_.model->stack_configs().back()->name;
  for (const Model::Attention& attention : folder_.model->attentions()) {
    if (attention.place.stack() == stack) expected += static_cast<size_t>(attention.heads);
  }
  EXPECT_EQ(heads, expected);
}

/// Every sublayer adds what it adds, every norm multiplies by what it does; then F less the F where one part is 0 is that part.
TEST_P(Contributions, IsWhatIsMissingWhereAllElseIsHeld) {
  if (!GetParam().affine_end)
    return;  // those are compared with transformers' (folders_contributions_test.cpp)
  SiteValues seen;
  seen.keep("*");
  score(&seen);
  const std::string stack = folder_.model->stack_configs().back()->name;
  int tried = 0;
  for (const Contribution& part : report_.parts) {
    if (part.kind == ContributionKind::kBiases || part.kind == ContributionKind::kOutput) continue;
    SiteValues held;
    for (const SiteShape& site : folder_.model->sites()) {
      const bool is_part =
          site.name == part.name || (part.head && site.name == part.head->attention + ".heads") ||
          (part.kind == ContributionKind::kFeedForward && site.name == part.name + ".output");
      const bool adds = site.name.ends_with("attention.heads") ||
                        site.name.ends_with("feed_forward.output") || site.name.ends_with(".embeddings");
      if (!site.name.starts_with(stack) || !(adds || site.name.ends_with("_norm.scale"))) continue;
      Tensor numbers = copied(seen.value(site.name).view());
      const int64_t width = numbers.cols() / site.blocks, begin = part.head ? part.head->head * width : 0;
      for (int64_t i = 0; is_part && i < numbers.rows(); ++i)
        for (int64_t c = begin; c < begin + (part.head ? width : numbers.cols()); ++c) numbers(i, c) = 0;
      held.replace({.site = site.name, .numbers = std::move(numbers)});
    }
    EXPECT_NEAR(report_.score - score(&held), part.sum, 1e-5 * std::max(1.0, report_.magnitude)) << part.name;
    ++tried;
  }
  EXPECT_GT(tried, 6);
}

TEST_P(Contributions, OfAHeadAreThoseOfTheTokensItReads) {
  const ContributionReport found = heads_contributions(folder_, GetParam().question, {.sources = 1000});
  for (const Contribution& part : found.parts) {
    if (!part.head) continue;
    ASSERT_EQ(part.sources.size(), found.source_labels(part).size()) << part.name;
    double sum = 0;
    for (const double one : part.sources) sum += one;
    EXPECT_NEAR(sum, part.sum, 1e-5 * std::max(1.0, found.magnitude)) << part.name;
  }
}

TEST_P(Contributions, OfAMutedHeadAreZero) {
  SiteValues muted;
  const std::string name = [&] {
    for (const Contribution& part : report_.parts) {
      if (part.head && std::abs(part.sum) > 1e-3) return part.name;
    }
    return std::string();
  }();
  ASSERT_FALSE(name.empty());
  muted.mute(name);
  const ContributionReport found = heads_contributions(folder_, GetParam().question, {.sites = &muted});
  EXPECT_LT(found.error(), 2e-6);
  for (const Contribution& part : found.parts) {
    if (part.name == name) {
      EXPECT_EQ(part.sum, 0);
    }
  }
}

TEST(ContributionsOfWords, AreOfTheModelsOwnAnswerWithoutOne) {
  const ModelFolder folder = causal_folder();
  const ContributionReport own = heads_contributions(folder, {.text = "two dogs see the"});
  ASSERT_TRUE(own.asked.answer.has_value());
  const ContributionReport named =
      heads_contributions(folder, {.text = "two dogs see the", .answer = own.asked.answer->text});
  EXPECT_EQ(named.score, own.score);
  EXPECT_EQ(named.parts[3].sum, own.parts[3].sum);
}

TEST(ContributionsOfWords, LessTheMeanOfAllLogitsIgnoreWhatAllHave) {
  const ModelFolder folder = llama_folder();
  const ContributionReport plain = heads_contributions(folder, kNext);
  const ContributionReport centred = heads_contributions(folder, kNext, {.centred = true});
  EXPECT_LT(centred.error(), 2e-6);
  const ContributionReport answer =
      heads_contributions(folder, {.text = kNext.text, .answer = kNext.answer}, {.centred = true});
  const ContributionReport wrong =
      heads_contributions(folder, {.text = kNext.text, .answer = kNext.wrong}, {.centred = true});
  for (size_t i = 0; i < plain.parts.size(); ++i)
    EXPECT_NEAR(answer.parts[i].sum - wrong.parts[i].sum, plain.parts[i].sum, 1e-5) << plain.parts[i].name;
}

TEST(ContributionsOfWords, AtEveryPositionAreThoseOfEachTextThatEndsThere) {
  const ModelFolder folder = causal_folder();
  const ContributionReport all =
      heads_contributions(folder, {.text = kExplainedLine}, {.every_position = true});
  EXPECT_LT(all.error(), 2e-6);
  const std::vector<std::string> words = {"two", "dogs", "see", "the", "park"};
  std::string text;
  for (size_t i = 0; i + 1 < words.size(); ++i) {
    text += (i > 0 ? " " : "") + words[i];
    const ContributionReport one = heads_contributions(folder, {.text = text, .answer = words[i + 1]});
    EXPECT_NEAR(all.scores[i], one.score, 2e-5);
    for (size_t p = 0; p < one.parts.size(); ++p) {
      EXPECT_NEAR(
          all.parts[p].positions[i],
          one.parts[p].kind == ContributionKind::kOutput ? one.parts[p].sum : one.parts[p].positions[i], 2e-5)
          << one.parts[p].name;
    }
  }
}

TEST(ContributionsOfSentences, AddUpToTheCosine) {
  for (const Pooling pooling : {Pooling::kMean, Pooling::kFirst, Pooling::kMax, Pooling::kLast}) {
    SentenceModel model = attribution_sentences();
    model.poolings = {pooling};
    model.steps = {nullptr};  // its length
    const AnswerQuestion question{.text = kExplainedLine, .answer = "a cat sees the small dogs"};
    const ContributionReport found = heads_contributions(model, question, {.sources = 2});
    EXPECT_EQ(found.kind, ContributionScore::kCosine);
    EXPECT_LT(found.error(), 2e-6);
    EXPECT_LE(std::abs(found.score), 1 + 1e-6);
    AnswerQuestion other = question;
    other.wrong = "two small cats";
    const ContributionReport less = heads_contributions(model, other);
    other.answer = other.wrong;
    other.wrong.clear();
    EXPECT_NEAR(less.score, found.score - heads_contributions(model, other).score, 1e-6);
  }
}

TEST(ContributionsOfSeveralTexts, AreMeansWithIntervals) {
  const ModelFolder folder = causal_folder();
  const std::vector<AnswerQuestion> questions = {
      kNext,
      {.text = "two cats run the", .answer = "park", .wrong = "small"},
      {.text = "a park", .answer = "the", .wrong = "a"}};
  const MeanContributions mean = heads_contributions(folder, questions);
  EXPECT_EQ(mean.texts, 3);
  std::vector<double> third, scores;
  for (const AnswerQuestion& question : questions) {
    const ContributionReport one = heads_contributions(folder, question);
    third.push_back(one.parts[3].sum);
    scores.push_back(one.score);
    EXPECT_EQ(one.parts[3].name, mean.parts[3].name);
  }
  EXPECT_EQ(mean.parts[3].sum.mean, interval_of(third).mean);
  EXPECT_EQ(mean.parts[3].sum.half, interval_of(third).half);
  EXPECT_EQ(mean.score.mean, interval_of(scores).mean);
  EXPECT_LT(mean.largest_error, 2e-6);
  EXPECT_THAT([&] { heads_contributions(folder, std::vector<AnswerQuestion>()); },
              ThrowsMessage<UsageError>(HasSubstr("no text")));
  EXPECT_THAT(
      [&] {
        heads_contributions(folder,
                            std::vector<AnswerQuestion>{kNext, {.text = "two", .answer = "elephant"}});
      },
      ThrowsMessage<UsageError>(HasSubstr("text 2: ")));
}

TEST(ContributionsRefuse, WhatDoesNotFit) {
  const ModelFolder causal = causal_folder(), encoder = bert_folder(),
                    labels = attribution_classifier(LabelRows::kFirst);
  EXPECT_THAT([&] { heads_contributions(causal, kNext, {.every_position = true}); },
              ThrowsMessage<UsageError>(HasSubstr("leave `answer`")));
  EXPECT_THAT([&] { heads_contributions(causal, {.text = "two"}, {.every_position = true}); },
              ThrowsMessage<UsageError>(HasSubstr("longer text")));
  EXPECT_THAT([&] { heads_contributions(encoder, {.text = kHidden.text}, {.every_position = true}); },
              ThrowsMessage<UsageError>(HasSubstr("one after the other")));
  EXPECT_THAT([&] { heads_contributions(labels, kJoy, {.centred = true}); },
              ThrowsMessage<UsageError>(HasSubstr("`centred`")));
  EXPECT_THAT([&] { heads_contributions(labels, {.text = kExplainedLine, .answer = "rage"}); },
              ThrowsMessage<UsageError>(HasSubstr("rage")));
  EXPECT_THAT([&] { heads_contributions(encoder, {.text = "two dogs", .answer = "see"}); },
              ThrowsMessage<UsageError>(HasSubstr("the given text has 0 masks")));
  EXPECT_THAT([&] { heads_contributions(causal, {.text = "two dogs", .answer = "park", .wrong = "park"}); },
              ThrowsMessage<UsageError>(HasSubstr("both begin with")));
  EXPECT_THAT([&] { heads_contributions(attribution_encoder(false), kNext); },
              ThrowsMessage<UsageError>(HasSubstr("predicts no words")));
  EXPECT_THAT([&] { heads_contributions(causal, kNext, {.sources = -1}); },
              ThrowsMessage<UsageError>(HasSubstr("sources")));
  SiteValues absent;
  absent.mute("decoder.9.self_attention.0");
  EXPECT_THAT([&] { heads_contributions(causal, kNext, {.sites = &absent}); },
              ThrowsMessage<UsageError>(HasSubstr("decoder.9")));
  EXPECT_THAT([&] { heads_contributions(attribution_sentences(), {.text = "two dogs"}); },
              ThrowsMessage<UsageError>(HasSubstr("`answer`")));
}

}  // namespace
}  // namespace mh
