// What is added at a site, in whole models of every kind: by text, position and head, in cached decoding as in one pass.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/evaluate/perplexity.h"
#include "multihead/evaluate/score.h"
#include "multihead/generate/generate.h"
#include "multihead/generate/translate.h"
#include "multihead/heads/sites/observe_text.h"
#include "multihead/heads/sites/site_values.h"
#include "tests/generate/generate_golden.h"
#include "tests/heads/importance/scored_families.h"
#include "tests/support/small_model.h"

namespace mh {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

Tensor wave_of(int64_t columns) {
  Tensor wave(1, columns);
  for (int64_t c = 0; c < columns; ++c) wave(0, c) = std::sin(1.0f + 1.7f * static_cast<float>(c));
  return wave;
}

/// A wave that is added to the rows of a site that are meant.
struct AddedWave {
  std::string site;
  int64_t columns = 0;
  float strength = 1;
  std::optional<int32_t> sequence = {}, position = {};
  std::optional<int> head = {};

  void put(SiteValues& values) const {
    values.add({.site = site,
                .sequence = sequence,
                .position = position,
                .head = head,
                .numbers = wave_of(columns),
                .strength = strength});
  }
};

TEST(AddedValues, OfAStrengthOfZeroChangeNoBit) {
  for (const ScoredFamily& family : scored_families()) {
    const Model& model = *family.model.folder().model;
    const Tensor references = vectors_of_family(family);
    const std::vector<double> plain = scores_with(family, nullptr, references.view());
    for (const SiteShape& site : model.sites()) {
      const auto ends = [&](const char* end) { return site.name.ends_with(end); };
      if (site.columns == 0 || ends("logits") || ends("pooled"))
        continue;  // which take another path, or do not run
      SiteValues none, some;
      AddedWave{.site = site.name, .columns = site.columns, .strength = 0}.put(none);
      AddedWave{.site = site.name, .columns = site.columns, .strength = 3}.put(some);
      EXPECT_EQ(scores_with(family, &none, references.view()), plain) << family.name << " " << site.name;
      if (ends(".0.output")) {
        EXPECT_NE(scores_with(family, &some, references.view()), plain) << family.name << " " << site.name;
      }
    }
  }
}

TEST(AddedValues, AreWhatIsThereAndTheNumbers) {
  for (const ScoredFamily& family : scored_families()) {
    const ModelFolder& folder = family.model.folder();
    const Model::Attention attention = folder.model->attentions()[0];
    const std::string site = attention.name + ".heads";
    const auto seen = [&](Sites* sites, std::optional<int64_t> number) {
      return copied(observe_text(folder, "two dogs run in the park", {},
                                 {.keep = {site}, .sites = sites, .number = number})
                        .value(site)
                        .view());
    };
    const Tensor plain = seen(nullptr, {});
    const int heads = attention.heads;
    const int64_t width = plain.cols() / heads;
    SiteValues values;
    AddedWave{.site = site, .columns = width, .strength = -2, .sequence = 7, .position = 1, .head = heads - 1}
        .put(values);
    const Tensor found = seen(&values, 7), other = seen(&values, 5), wave = wave_of(width);
    for (int64_t row = 0; row < plain.rows(); ++row) {
      for (int64_t c = 0; c < plain.cols(); ++c) {
        const bool meant = row == 1 && c >= plain.cols() - width;
        EXPECT_EQ(other(row, c), plain(row, c));
        EXPECT_EQ(found(row, c),
                  meant ? plain(row, c) + -2 * wave(0, c - plain.cols() + width) : plain(row, c));
      }
    }
  }
}

TEST(AddedValues, InCachedDecodingAreThoseOfOnePass) {
  const ModelFolder folder = load_model_folder(test::generate_folder());
  const LanguageModel& model = folder.language_model();
  const int64_t width = model.facts().d_model;
  const int heads = model.attentions()[0].heads;
  const std::vector<std::vector<int32_t>> prompts{{7, 3, 5}, {9}, {4, 4, 8, 2, 6}};
  const auto plain = generate(model, prompts, {.next_token = NextToken::kGreedy, .max_new_tokens = 11});
  for (const AddedWave& added :
       {AddedWave{.site = "decoder.1.output", .columns = width, .strength = 1.5f},
        AddedWave{.site = "decoder.0.output", .columns = width, .strength = -3, .sequence = 1},
        AddedWave{.site = "decoder.0.input", .columns = width, .strength = 4, .position = 6},
        AddedWave{.site = "decoder.0.self_attention.keys", .columns = width, .strength = 2, .position = 1},
        AddedWave{.site = "decoder.1.self_attention.heads",
        .columns = width / heads,
        .strength = 5,
        .sequence = 2,
        .position = 5,
        .head = 1},
        AddedWave{.site = "decoder.0.self_attention.contributions.1", .columns = width, .strength = 2}}) {
    SiteValues values;
    added.put(values);
    const auto found =
        generate(model, prompts, {.next_token = NextToken::kGreedy, .max_new_tokens = 11, .sites = &values});
    EXPECT_TRUE(values.unread().empty()) << added.site;
    std::vector<std::vector<int32_t>> whole;
    for (size_t p = 0; p < prompts.size(); ++p) {
      whole.push_back(prompts[p]);
      whole.back().insert(whole.back().end(), found[p].tokens.begin(), found[p].tokens.end());
    }
    const auto at_once = score_windows(model, whole, {.sites = &values});
    double changed = 0;
    for (size_t p = 0; p < prompts.size(); ++p) {
      for (size_t i = 0; i < found[p].tokens.size(); ++i)
        EXPECT_NEAR(found[p].log_probabilities[i], at_once[p][prompts[p].size() - 1 + i], 2e-5)
            << added.site << " prompt " << p << " token " << i;
      changed = std::max(changed, std::abs(found[p].log_probability - plain[p].log_probability));
    }
    EXPECT_GT(changed, 1e-3) << added.site;
  }
}

TEST(AddedValues, ReachTranslationsAsTheyReachTheirScores) {
  EncoderDecoder model(small_shape().config());
  model.initialise(11);
  sharpen(model, 1.7f);
  add_to_logit(model, kEnd, 1.0f);
  const auto sources = random_sources(5, {3, 11, 2, 7});
  const TranslateOptions options{.search = {.beam_size = 3, .max_length = 9}};
  const auto plain = translate(model, sources, options);
  for (const AddedWave& added :
       {AddedWave{.site = "encoder.1.output", .columns = 20, .strength = 2},
        AddedWave{.site = "decoder.1.output", .columns = 20, .strength = 2, .sequence = 2},
        AddedWave{
            .site = "decoder.2.cross_attention.heads", .columns = 4, .strength = 8, .position = 0, .head = 3},
        AddedWave{.site = "decoder.0.cross_attention.keys", .columns = 20, .strength = -3, .position = 1}}) {
    SiteValues values;
    added.put(values);
    TranslateOptions steered = options;
    steered.sites = &values;
    const auto found = translate(model, sources, steered);
    std::vector<std::vector<int32_t>> targets;
    for (const auto& hypotheses : found) targets.push_back(hypotheses[0].tokens);
    const auto scores = score(model, sources, targets, {.sites = &values});
    double changed = 0;
    for (size_t s = 0; s < sources.size(); ++s) {
      double sum = 0;
      for (size_t i = 0; i < targets[s].size() + (found[s][0].ended ? 1 : 0); ++i)
        sum += static_cast<double>(scores[s][i]);
      EXPECT_NEAR(found[s][0].log_probability, sum, 1e-4) << added.site << " " << s;
      changed = std::max(changed, std::abs(found[s][0].log_probability - plain[s][0].log_probability));
    }
    EXPECT_GT(changed, 1e-3) << added.site;
  }
}

TEST(AddedValues, AreRefusedOrBlamedInOneLine) {
  const ModelFolder folder = load_model_folder(test::generate_folder());
  const LanguageModel& model = folder.language_model();
  const std::vector<std::vector<int32_t>> prompts{{7, 3, 5}};
  SiteValues narrow, no_head, nothing, huge;
  AddedWave{.site = "decoder.1.output", .columns = 3}.put(narrow);
  EXPECT_THAT(
      [&] { generate(model, prompts, {.sites = &narrow}); },
      ThrowsMessage<ShapeError>(HasSubstr("'decoder.1.output': the numbers to add there have 3 columns")));
  AddedWave{.site = "decoder.1.output", .columns = 3, .head = 1}.put(no_head);
  EXPECT_THAT([&] { generate(model, prompts, {.sites = &no_head}); },
              ThrowsMessage<UsageError>(HasSubstr("there is no head 1; it has 1")));
  AddedWave{.site = "decoder.1.output", .columns = model.facts().d_model, .position = 999}.put(nothing);
  generate(model, prompts, {.max_new_tokens = 2, .sites = &nothing});
  EXPECT_THAT(nothing.unread(),
              testing::ElementsAre("nothing read what was added at site 'decoder.1.output', position 999"));
  AddedWave{.site = "decoder.0.output", .columns = model.facts().d_model, .strength = 3e38f}.put(huge);
  SiteValues large;  // finite, but not the squares that a norm adds up
  AddedWave{.site = "decoder.0.output", .columns = model.facts().d_model, .strength = 1e25f}.put(large);
  for (SiteValues* values : {&huge, &large})
    EXPECT_THAT([&] { generate(model, prompts, {.sites = values}); },
                ThrowsMessage<Error>(HasSubstr("put into it may be too large")));
}

}  // namespace
}  // namespace mh
