// How much heads matter, on models of each kind: gradients beside differences, ablations beside whole passes, a three-token text
// beside a calculation in float64.
#include "multihead/heads/importance/heads_importance.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/base/thread_pool.h"
#include "multihead/heads/importance/gate_gradients.h"
#include "multihead/heads/reports/importance_json.h"
#include "multihead/heads/sites/site_values.h"
#include "multihead/models/causal_model.h"
#include "tests/heads/importance/scored_families.h"
#include "tests/heads/measures/circuit_families.h"

namespace mh {
namespace {

using test::operator*;
using testing::HasSubstr;

TEST(HeadImportance, KnowsWhatEachKindOfModelIsScoredBy) {
  std::vector<ScoreKind> kinds;
  for (const ScoredFamily& family : scored_families()) kinds.push_back(family.texts.kind);
  EXPECT_THAT(kinds,
              testing::ElementsAre(ScoreKind::kTranslation, ScoreKind::kNextTokens, ScoreKind::kMaskedWords,
                                   ScoreKind::kLabels, ScoreKind::kLabels, ScoreKind::kLabels,
                                   ScoreKind::kLabels, ScoreKind::kLabels, ScoreKind::kVectors));
}

// A corpus is read without the prompt of a sentence model, so there is none to leave out of the pooling.
TEST(HeadImportance, OfVectorsCountsEveryTokenOfAText) {
  ScoredFamily family = std::move(scored_families().back());
  const Tensor plain = vectors_of_family(family);
  ASSERT_GT(plain.size(), 0);
  SentenceModel with_prompt = load_sentence_model(golden_of_importance("sentences/modes"));
  with_prompt.prompt = "the cat ";
  with_prompt.unpooled = 3;
  family.model = std::move(with_prompt);
  const Tensor prompted = vectors_of_family(family);
  for (int64_t i = 0; i < plain.size(); ++i) EXPECT_EQ(prompted.data()[i], plain.data()[i]);
}

TEST(HeadImportance, GradientsAreWhatTheScoreChangesByAGate) {
  for (const ScoredFamily& family : scored_families()) {
    SCOPED_TRACE(family.name);
    Tensor next = vectors_of_family(family);
    if (next.rows() > 0) {  // each text beside the one after it
      const Tensor own = copied(next.view());
      for (int64_t s = 0; s < next.rows(); ++s)
        std::copy_n(own.view().row((s + 1) % own.rows()), own.cols(), next.view().row(s));
    }
    const GateGradients found = gate_gradients(family.model, family.texts, {.max_batch_tokens = 23});
    ASSERT_EQ(found.gradients.rows(), 5) << "the empty line is left out";
    double largest = 0;
    for (int64_t i = 0; i < found.gradients.size(); ++i)
      largest = std::max(largest, std::fabs(static_cast<double>(found.gradients.data()[i])));
    EXPECT_GT(largest, 1e-4);
    double sum = 0;
    for (const double score : scores_with(family, nullptr, next.view())) sum += score;
    EXPECT_NEAR(found.score, sum, 1e-4 * std::fabs(sum));
    for (size_t h = 0; h < found.heads.size(); ++h) {
      // Short where the score bends: the translator's rectifiers, logits. A shorter one drowns cosines in rounding.
      const float step = family.texts.kind == ScoreKind::kTranslation ? 0.002f
                         : family.texts.kind == ScoreKind::kLabels    ? 0.01f
                                                                      : 0.03f;
      SiteValues above, below;
      above.set_gate(named(found.heads[h]), 1 + step);
      below.set_gate(named(found.heads[h]), 1 - step);
      const auto high = scores_with(family, &above, next.view()),
                 low = scores_with(family, &below, next.view());
      for (size_t s = 0; s < high.size(); ++s) {
        EXPECT_NEAR(found.gradients(static_cast<int64_t>(s), static_cast<int64_t>(h)),
                    (high[s] - low[s]) / (2 * static_cast<double>(step)), 1e-2 * largest)
            << named(found.heads[h]) << ", text " << s;
      }
    }
  }
}

TEST(HeadImportance, AblationsAreWhatWholePassesLose) {
  for (const ScoredFamily& family : scored_families()) {
    SCOPED_TRACE(family.name);
    const Tensor whole = vectors_of_family(family);
    const std::vector<HeadName> heads = family.model.folder().model->heads_named(HeadPattern("*"));
    const std::vector<double> before = scores_with(family, nullptr, whole.view());
    for (const bool others : {false, true}) {
      const HeadAblation found =
          ablate_heads(family.model, family.texts, heads, {.all_others = others, .max_batch_tokens = 19});
      for (size_t h = 0; h < heads.size(); ++h) {
        SiteValues muted;
        for (const HeadName& head : heads) {
          if (head.attention == heads[h].attention && (head.head == heads[h].head) != others)
            muted.mute(named(head));
        }
        const std::vector<double> after = scores_with(family, &muted, whole.view());
        for (size_t s = 0; s < after.size(); ++s) {
          EXPECT_NEAR(found.losses(static_cast<int64_t>(s), static_cast<int64_t>(h)), before[s] - after[s],
                      2e-5 * std::max(1.0, std::fabs(before[s])))
              << named(heads[h]) << ", text " << s;
        }
      }
    }
  }
}

TEST(HeadImportance, AHeadMayBecomeItsMean) {
  for (const ScoredFamily& family : scored_families()) {
    SCOPED_TRACE(family.name);
    const std::vector<HeadName> heads = family.model.folder().model->heads_named(HeadPattern("*"));
    SiteValues seen;
    seen.keep("*.heads");
    const Tensor whole = vectors_of_family(family);
    const std::vector<double> before = scores_with(family, &seen, whole.view());
    const HeadAblation found =
        ablate_heads(family.model, family.texts, heads, {.to = AblatedTo::kMean, .max_batch_tokens = 19});
    for (size_t h = 0; h < heads.size(); ++h) {
      const Tensor& output = seen.value(heads[h].attention + ".heads");
      const int64_t size =
          output.cols() / std::ranges::count(heads, heads[h].attention, &HeadName::attention);
      Tensor mean(1, size);
      for (int64_t c = 0; c < size; ++c) {
        double sum = 0;
        for (int64_t i = 0; i < output.rows(); ++i)
          sum += static_cast<double>(output(i, heads[h].head * size + c));
        mean(0, c) = static_cast<float>(sum / static_cast<double>(output.rows()));
      }
      SiteValues replaced;
      replaced.replace(
          {.site = heads[h].attention + ".heads", .head = heads[h].head, .numbers = std::move(mean)});
      const std::vector<double> after = scores_with(family, &replaced, whole.view());
      for (size_t s = 0; s < after.size(); ++s)
        EXPECT_NEAR(found.losses(static_cast<int64_t>(s), static_cast<int64_t>(h)), before[s] - after[s],
                    2e-5 * std::max(1.0, std::fabs(before[s])));
    }
  }
}

/// log p of the second and the third of three tokens by a causal model of one layer, without positions, biases and norms before
/// the end, in float64: x_i = E[t_i] + sum_h g_h sum_j a_hij (E[t_j] W^V_h) W^O_h, and logits = RMS(x) E^T.
double log_p_of_three(const test::WholeMatrices& weights, const std::vector<int32_t>& ids, int heads,
                      const std::vector<double>& gates) {
  const DoubleMatrix& table = weights.at("embedding");
  const int64_t d = table.cols();
  DoubleMatrix x(3, d);
  for (int64_t i = 0; i < 3; ++i) {
    for (int64_t c = 0; c < d; ++c) x(i, c) = table(ids[static_cast<size_t>(i)], c);
  }
  const DoubleMatrix normed = [&] {
    DoubleMatrix y(3, d);
    for (int64_t i = 0; i < 3; ++i) {
      double squares = 0;
      for (int64_t c = 0; c < d; ++c) squares += x(i, c) * x(i, c);
      for (int64_t c = 0; c < d; ++c)
        y(i, c) = x(i, c) / std::sqrt(squares / static_cast<double>(d) + 1e-5) *
                  weights.at("decoder.0.self_attention_norm.gain")(0, c);
    }
    return y;
  }();
  const std::string own = "decoder.0.self_attention.";
  for (int h = 0; h < heads; ++h) {
    const DoubleMatrix q = normed * weights.head(own + "w_q", h, heads),
                       k = normed * weights.head(own + "w_k", h, heads),
                       v = normed * weights.head(own + "w_v", h, heads);
    const DoubleMatrix& w_o = weights.at(own + "w_o");
    for (int64_t i = 0; i < 3; ++i) {
      std::vector<double> a;
      double sum = 0;
      for (int64_t j = 0; j <= i; ++j) {
        double score = 0;
        for (int64_t c = 0; c < q.cols(); ++c) score += q(i, c) * k(j, c);
        a.push_back(std::exp(score / std::sqrt(static_cast<double>(q.cols()))));
        sum += a.back();
      }
      for (int64_t c = 0; c < v.cols(); ++c) {
        double z = 0;
        for (int64_t j = 0; j <= i; ++j) z += a[static_cast<size_t>(j)] / sum * v(j, c);
        for (int64_t o = 0; o < d; ++o)
          x(i, o) += gates[static_cast<size_t>(h)] * z * w_o(h * v.cols() + c, o);
      }
    }
  }
  double log_p = 0;
  for (int64_t i = 0; i < 2; ++i) {
    double squares = 0;
    for (int64_t c = 0; c < d; ++c) squares += x(i, c) * x(i, c);
    const double length = std::sqrt(squares / static_cast<double>(d) + 1e-5);
    double sum = 0, of_next = 0;
    for (int64_t t = 0; t < table.rows(); ++t) {
      double logit = 0;
      for (int64_t c = 0; c < d; ++c)
        logit += x(i, c) / length * weights.at("decoder.final_norm.gain")(0, c) * table(t, c);
      sum += std::exp(logit);
      if (t == ids[static_cast<size_t>(i) + 1]) of_next = logit;
    }
    log_p += of_next - std::log(sum);
  }
  return log_p;
}

TEST(HeadImportance, OfThreeTokensIsAsCalculatedByHand) {
  CausalConfig config;
  config.embedding = {.vocabulary = 7, .d_model = 5, .scaled = false};
  config.positions = Positions::kNone;
  config.max_positions = 11;
  config.stack.name = "decoder";
  config.stack.d_model = 5;
  config.stack.mask = StackMask::causal();
  config.stack.norm = {.kind = NormKind::kRms, .placement = NormPlacement::kPre};
  config.stack.layers = {{.self_attention = {.heads = 3, .d_key = 2, .d_value = 2, .biases = Biases::kNone},
                          .feed_forward = {.d_ff = 3, .biases = Biases::kNone}}};
  auto causal = std::make_unique<CausalModel>(config);
  test::fill_parameters(*causal, 5);
  test::put_numbers(*causal, "decoder.0.feed_forward.w_2",
                    std::vector<std::vector<float>>(3, std::vector<float>(5, 0)));
  const test::WholeMatrices weights(*causal);
  ModelFolder folder;
  folder.model = std::move(causal);
  const ScoredModel model = std::move(folder);
  const std::vector<int32_t> ids = {3, 1, 6};
  const ScoredTexts texts{.kind = ScoreKind::kNextTokens,
                          .read = {.sentences = 1},
                          .texts = {{.ids = ids, .rows = {0, 1}, .tokens = {1, 6}}}};
  const auto log_p = [&](std::vector<double> gates) { return log_p_of_three(weights, ids, 3, gates); };
  const ImportanceReport gradients = heads_importance(model, texts, {});
  const ImportanceReport ablations =
      heads_importance(model, texts, {.measure = ImportanceMeasure::kAblation});
  EXPECT_NEAR(gradients.score, log_p({1, 1, 1}), 1e-5);
  EXPECT_NEAR(ablations.score, log_p({1, 1, 1}), 1e-5);
  for (size_t h = 0; h < 3; ++h) {
    std::vector<double> above(3, 1), below(3, 1), without(3, 1);
    above[h] += 1e-5, below[h] -= 1e-5, without[h] = 0;
    const auto of = [&](const ImportanceReport& report) {
      return std::ranges::find_if(
                 report.heads,
                 [&](const HeadImportance& head) { return head.name.head == static_cast<int>(h); })
          ->importance;
    };
    EXPECT_NEAR(of(gradients).mean, std::fabs(log_p(above) - log_p(below)) / 2e-5, 2e-5);
    EXPECT_NEAR(of(ablations).mean, log_p({1, 1, 1}) - log_p(without), 1e-5);
    EXPECT_EQ(of(gradients).half, std::numeric_limits<double>::infinity()) << "one text has no interval";
  }
}

TEST(HeadImportance, RanksAmongAllOrWithinAttentions) {
  const auto families = scored_families();
  const ScoredFamily& family = families[0];
  const ImportanceReport all = heads_importance(family.model, family.texts, {});
  for (size_t i = 0; i < all.heads.size(); ++i) {
    EXPECT_EQ(all.heads[i].rank, static_cast<int>(i) + 1);
    if (i > 0) {
      EXPECT_GE(all.heads[i - 1].importance.mean, all.heads[i].importance.mean);
    }
  }
  const ImportanceReport within = heads_importance(family.model, family.texts, {.within_attentions = true});
  for (size_t i = 0; i < within.heads.size(); ++i)
    EXPECT_EQ(within.heads[i].rank, static_cast<int>(i % 3) + 1);
  EXPECT_EQ(within.heads[0].name.attention, "encoder.0.self_attention");

  const ImportanceReport normalised = heads_importance(family.model, family.texts, {.normalised = true});
  std::map<std::string, double> squares;
  for (const HeadImportance& head : normalised.heads)
    squares[head.name.attention] += head.importance.mean * head.importance.mean;
  EXPECT_EQ(squares.size(), 6u);
  for (const auto& [attention, sum] : squares) EXPECT_NEAR(sum, 1, 1e-6) << attention;

  const ImportanceReport some =
      heads_importance(family.model, family.texts, {.heads = {HeadPattern("decoder.*.cross_attention.1")}});
  ASSERT_EQ(some.heads.size(), 2u);
  for (const HeadImportance& head : some.heads) {
    const auto same = std::ranges::find(all.heads, head.name, &HeadImportance::name);
    EXPECT_EQ(head.importance.mean, same->importance.mean);
  }
}

TEST(HeadImportance, TheOnlyHeadOfAnAttentionIsTheBestWhereTheOthersCostLeast) {
  const auto families = scored_families();
  const ImportanceReport alone =
      heads_importance(families[1].model, families[1].texts,
                       {.measure = ImportanceMeasure::kAlone, .within_attentions = true});
  double last = 0;
  for (const HeadImportance& head : alone.heads) {
    if (head.rank > 1) {
      EXPECT_GE(head.importance.mean, last);
    }
    last = head.importance.mean;
  }
}

TEST(HeadImportance, NeitherBatchesNorThreadsChangeIt) {
  const int threads = thread_count();
  for (const ScoredFamily& family : scored_families()) {
    SCOPED_TRACE(family.name);
    for (const ImportanceMeasure measure : {ImportanceMeasure::kGradient, ImportanceMeasure::kAblation}) {
      const auto importance = [&](int64_t max_batch_tokens) {
        return heads_importance(
            family.model, family.texts,
            {.measure = measure, .texts = {.read = {.observe = {.max_batch_tokens = max_batch_tokens}}}});
      };
      set_thread_count(1);
      const ImportanceReport once = importance(2048);
      set_thread_count(3);
      const ImportanceReport again = importance(2048), alone = importance(1);
      set_thread_count(threads);
      EXPECT_EQ(importance_json(once, "m"), importance_json(again, "m"));
      for (const HeadImportance& head : once.heads) {
        const auto same = std::ranges::find(alone.heads, head.name, &HeadImportance::name);
        EXPECT_NEAR(head.importance.mean, same->importance.mean, 2e-5);
      }
    }
  }
}

TEST(HeadImportance, MasksAboutSoManyWordsAndNeverSpecialTokens) {
  const ScoredModel bert = load_scored_model(golden_of_importance("fill/bert"));
  const HeadsText text = lines_of_importance(false);
  const auto read = [&](double share, uint64_t seed) {
    TextCorpus corpus(text);
    return read_scored_texts(bert.folder(), corpus, {.masked = share, .seed = seed});
  };
  TextCorpus corpus(text);
  const ScoredTexts few = read(0.15, 1), all = read(1, 1), other = read(0.15, 2);
  bool differs = false;
  for (size_t i = 0; i < few.texts.size(); ++i) {
    const auto length = few.texts[i].ids.size();
    EXPECT_EQ(all.texts[i].rows.size(), length - 2) << "all but [CLS] and [SEP]";
    EXPECT_EQ(few.texts[i].rows.size(),
              std::max<size_t>(1, static_cast<size_t>(std::lround(0.15 * static_cast<double>(length - 2)))));
    EXPECT_TRUE(std::ranges::is_sorted(few.texts[i].rows));
    differs = differs || few.texts[i].rows != other.texts[i].rows;
  }
  EXPECT_TRUE(differs);
  EXPECT_EQ(few.texts[0].ids, read(0.15, 1).texts[0].ids);
}

TEST(HeadImportance, RefusesWhatCannotBe) {
  const auto families = scored_families();
  const auto message = [&](const ScoredFamily& family, const HeadsText& text,
                           const ImportanceOptions& options) -> std::string {
    TextCorpus corpus(text);
    try {
      heads_importance(family.model, corpus, options);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  const HeadsText one{.sources = {"two dogs run in the park"}}, word{.sources = {"a", ""}},
      many = lines_of_importance(false);
  EXPECT_THAT(message(families.back(), one, {}), HasSubstr("give at least two lines"));
  EXPECT_EQ(message(families[3], one, {.measure = ImportanceMeasure::kAblation}), "");
  EXPECT_EQ(message(families[1], one, {}), "") << "one sentence is enough where words are predicted";
  EXPECT_THAT(message(families[1], many, {.heads = {HeadPattern("encoder.*")}}),
              HasSubstr("no head 'encoder.*'"));
  EXPECT_THAT(message(families[1], many, {.measure = ImportanceMeasure::kAblation, .normalised = true}),
              HasSubstr("`normalised` divides by the norm"));
  EXPECT_THAT(message(families[2], many, {.texts = {.masked = 0}}), HasSubstr("`masked` is 0"));
  EXPECT_THAT(message(families[1], {.sources = many.sources, .targets = many.sources}, {}),
              HasSubstr("reads one text"));
  EXPECT_THAT(message(families[1], {.sources = {"", " "}}, {}), HasSubstr("the text has no line"));
}

TEST(HeadImportance, OfLabelsScoresTheOneThatIsAskedFor) {
  const ScoredModel model = load_scored_model(golden_of_importance("labels/bert_pairs"));
  const HeadsText text = lines_of_importance(false);
  const auto scored = [&](const std::string& label) {
    TextCorpus corpus(text);
    return ScoredFamily{"labels", load_scored_model(golden_of_importance("labels/bert_pairs")),
                        read_scored_texts(model.folder(), corpus, {.label = label})};
  };
  const std::vector<double> best = scores_with(scored(""), nullptr);
  std::vector<double> most(best.size(), -1e9);
  for (const char* label : {"entailment", "neutral", "2"}) {
    const std::vector<double> scores = scores_with(scored(label), nullptr);
    for (size_t i = 0; i < scores.size(); ++i) most[i] = std::max(most[i], scores[i]);
  }
  EXPECT_EQ(best, most);
  EXPECT_THAT([&] { scored("joy"); },
              testing::ThrowsMessage<UsageError>(testing::HasSubstr("there is no label 'joy'")));
  TextCorpus corpus(text);
  const ScoredModel words = load_scored_model(golden_of_importance("fill/bert"));
  EXPECT_THAT([&] { read_scored_texts(words.folder(), corpus, {.label = "joy"}); },
              testing::ThrowsMessage<UsageError>("`label`: this model gives no labels; leave 'joy' out"));
}

}  // namespace
}  // namespace mh
