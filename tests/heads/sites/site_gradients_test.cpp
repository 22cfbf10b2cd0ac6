// Gradients of linear functions of sites, in models of every kind.
#include "multihead/heads/sites/site_gradients.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/heads/sites/text_pass.h"
#include "tests/heads/importance/scored_families.h"

namespace mh {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

Tensor wave_row(int64_t columns, float turn) {
  Tensor wave(1, columns);
  for (int64_t c = 0; c < columns; ++c) wave(0, c) = std::sin(turn + 1.3f * static_cast<float>(c));
  return wave;
}

/// The texts of a family, so often that they make several batches.
std::vector<Observation> read_often(const ScoredFamily& family, int times) {
  const HeadsText lines = lines_of_importance(family.texts.kind == ScoreKind::kTranslation);
  std::vector<Observation> texts;
  for (int time = 0; time < times; ++time) {
    for (size_t i = 0; i < lines.sources.size(); ++i) {
      if (lines.sources[i].empty()) continue;
      texts.push_back(observe_text(family.model.folder(), lines.sources[i],
                                   lines.targets.empty() ? std::string() : lines.targets[i],
                                   {.tokens_alone = true}));
    }
  }
  return texts;
}

struct Stream {
  std::string first, last;  // what its first layer reads, and what its second one gives
  int64_t columns = 0;
};
Stream stream_of(const Model& model) {
  const std::string stack = model.stack_configs().back()->name;
  return {stack + ".0.input", stack + ".1.output", model.facts().d_model};
}

TEST(SiteGradients, OfAListAreThoseOfEachTextAndTheSumsOwnSiteGivesItsNumbersBack) {
  for (const ScoredFamily& family : scored_families()) {
    const Model& model = *family.model.folder().model;
    const Stream stream = stream_of(model);
    const std::vector<Observation> texts = read_often(family, 13);
    std::vector<SiteSum> sums(texts.size());
    for (size_t i = 0; i < texts.size(); ++i) {
      sums[i].along = wave_row(stream.columns, static_cast<float>(i));
      sums[i].position = i % 3 == 0 ? -1 : 0;
    }
    const SiteGradientsAsked asked{.of = stream.last, .at = {"*"}};
    const auto all = site_gradients(model, texts, asked, sums);
    for (size_t i = 0; i < texts.size(); i += 7) {
      const auto alone = site_gradients(model, {&texts[i], 1}, asked, {&sums[i], 1});
      EXPECT_EQ(alone[0].value, all[i].value) << family.name;
      ASSERT_EQ(alone[0].gradients.size(), all[i].gradients.size());
      for (size_t g = 0; g < all[i].gradients.size(); ++g) {
        const auto& [site, found] = all[i].gradients[g];
        EXPECT_EQ(alone[0].gradients[g].first, site);
        const Tensor& expected = alone[0].gradients[g].second;
        ASSERT_EQ(found.rows(), expected.rows()) << family.name << " " << site;
        ASSERT_EQ(found.cols(), expected.cols()) << family.name << " " << site;
        for (int64_t n = 0; n < found.size(); ++n)
          ASSERT_EQ(found.data()[n], expected.data()[n]) << family.name << " " << site;
        if (site != stream.last) continue;
        const int64_t row = i % 3 == 0 ? found.rows() - 1 : 0;
        for (int64_t r = 0; r < found.rows(); ++r) {
          for (int64_t c = 0; c < found.cols(); ++c)
            EXPECT_EQ(found(r, c), r == row ? sums[i].along(0, c) : 0.0f) << family.name;
        }
      }
      EXPECT_EQ(all[i].gradients.back().first, stream.last) << family.name;
    }
  }
}

TEST(SiteGradients, AreSlopes) {
  const float step = 0.02f;
  for (const ScoredFamily& family : scored_families()) {
    const Model& model = *family.model.folder().model;
    const Stream stream = stream_of(model);
    const std::vector<Observation> texts = read_often(family, 1);
    std::vector<SiteSum> sums(texts.size());
    for (SiteSum& sum : sums) sum.along = wave_row(stream.columns, 0.3f);
    const SiteGradientsAsked asked{.of = stream.last, .at = {stream.first}};
    const Tensor moved = wave_row(stream.columns, 2);
    std::vector<std::vector<SiteGradients>> ends;
    for (const float by : {step, -step}) {
      SiteValues values;  // of the third text alone
      values.add({.site = stream.first, .sequence = 2, .numbers = copied(moved.view()), .strength = by});
      ends.push_back(site_gradients(model, texts, asked, sums, &values));
    }
    const auto plain = site_gradients(model, texts, asked, sums);
    EXPECT_EQ(ends[0][1].value, plain[1].value) << family.name;
    double slope = 0, length = 0;
    const Tensor& gradient = plain[2].gradients[0].second;
    for (int64_t r = 0; r < gradient.rows(); ++r) {
      for (int64_t c = 0; c < gradient.cols(); ++c) {
        slope += static_cast<double>(gradient(r, c)) * static_cast<double>(moved(0, c));
        length += std::pow(static_cast<double>(gradient(r, c)), 2);
      }
    }
    const double found = (ends[0][2].value - ends[1][2].value) / (2 * static_cast<double>(step));
    EXPECT_NEAR(found, slope, 0.01 * std::abs(slope) + 0.02 * std::sqrt(length)) << family.name;
  }
}

TEST(SiteGradients, OfSomeColumnsAreThoseOfAllWithZeros) {
  const ModelFolder folder = load_model_folder(golden_of_importance("generate/gpt2"));
  const std::vector<Observation> text = [&] {
    std::vector<Observation> one;
    one.push_back(observe_text(folder, "two dogs run", {}, {.tokens_alone = true}));
    return one;
  }();
  const int64_t words = folder.model->vocabulary().size();
  Tensor two(1, 2), all(1, words);
  all.fill(0);
  two(0, 0) = all(0, 5) = 1, two(0, 1) = all(0, 3) = -1;
  std::vector<SiteSum> some(1), whole(1);
  some[0] = {.position = -1, .columns = {5, 3}, .along = copied(two.view())};
  whole[0] = {.position = -1, .along = copied(all.view())};
  const SiteGradientsAsked asked{.of = "decoder.logits", .at = {"decoder.0.self_attention.heads"}};
  const auto of_two = site_gradients(*folder.model, text, asked, some),
             of_all = site_gradients(*folder.model, text, asked, whole);
  EXPECT_DOUBLE_EQ(of_two[0].value, of_all[0].value);
  const Tensor& a = of_two[0].gradients[0].second;
  const Tensor& b = of_all[0].gradients[0].second;
  for (int64_t n = 0; n < a.size(); ++n) EXPECT_EQ(a.data()[n], b.data()[n]);
}

TEST(SiteGradients, RefuseWhatIsNotThereInOneLine) {
  const ModelFolder folder = load_model_folder(golden_of_importance("generate/gpt2"));
  std::vector<Observation> texts;
  for (const char* const line : {"two dogs", "a cat"})
    texts.push_back(observe_text(folder, line, {}, {.tokens_alone = true}));
  const int64_t width = folder.model->facts().d_model;
  struct Case {
    SiteGradientsAsked asked;
    int64_t columns;
    std::optional<int64_t> position;
    const char* error;
  };
  const SiteGradientsAsked good{.of = "decoder.0.output", .at = {"decoder.0.input"}};
  const auto with = [&](auto change) {
    SiteGradientsAsked asked = good;
    change(asked);
    return asked;
  };
  const Case cases[] = {
      {with([](auto& a) { a.of = "decoder.7.output"; }), width, {}, "no site 'decoder.7.output'"},
      {with([](auto& a) { a.of = "decoder.*"; }), width, {}, "expected the name of one site"},
      {with([](auto& a) {
         a.at = {"*.self_attention.heads", "decoder.1.input"};
       }),
       width,
       {},
       "does not depend on decoder.1.input"},
      {with([](auto& a) { a.at = {"decoder.1.*"}; }), width, {}, "does not depend on decoder.1.*"},
      {with([](auto& a) { a.at = {}; }), width, {}, "`at`: name at least one site"},
      {with([](auto& a) { a.head = 1; }), width, {}, "not those of heads"},
      {with([](auto& a) { a.of = "decoder.0.self_attention.heads", a.head = 3; }),
       width,
       {},
       "expected 0 to 2"},
      {good, width + 1, {}, "columns, got"},
      {good, width, 99, "`position`: text 0 has"},
      {good, width, -99, "got -99"}};
  for (const Case& one : cases) {
    std::vector<SiteSum> sums(2);
    for (SiteSum& sum : sums) sum = {.position = one.position, .along = wave_row(one.columns, 1)};
    EXPECT_THAT([&] { site_gradients(*folder.model, texts, one.asked, sums); },
                ThrowsMessage<Error>(HasSubstr(one.error)));
  }
  std::vector<SiteSum> sums(2);
  for (SiteSum& sum : sums) sum.along = wave_row(width, 1);
  sums[1].along(0, 2) = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT([&] { site_gradients(*folder.model, texts, good, sums); },
              ThrowsMessage<UsageError>(HasSubstr("not finite")));
  sums[1].along = Tensor(9, width);
  sums[1].along.fill(1);
  EXPECT_THAT([&] { site_gradients(*folder.model, texts, good, sums); },
              ThrowsMessage<ShapeError>(HasSubstr("got 9 rows of numbers")));
}

}  // namespace
}  // namespace mh
