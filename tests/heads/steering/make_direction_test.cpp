// A direction is what its formula says of the rows that observe_text() shows.
#include "multihead/heads/steering/heads_steer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/folders/weights_hash.h"
#include "multihead/heads/sites/inspected_texts.h"
#include "multihead/heads/sites/observe_text.h"
#include "tests/heads/importance/scored_families.h"

namespace mh {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

const std::vector<std::string> kToward{"two dogs run in the park", "a cat", "the end of the small park"},
    kAway{"the cat sees", "two small dogs"};

/// The mean of the rows [first, last] of columns, over texts.
std::vector<double> mean_by_hand(const ModelFolder& folder, const std::vector<std::string>& texts,
                                 const std::string& site, int64_t begin, int64_t width, bool last,
                                 double& lengths) {
  std::vector<double> mean(static_cast<size_t>(width));
  for (const std::string& text : texts) {
    const Observation seen = observe_text(folder, text, {}, {.keep = {site}});
    const Tensor& value = seen.value(site);
    double squares = 0;
    for (int64_t c = 0; c < width; ++c) {
      double sum = 0;
      for (int64_t i = 0; i < value.rows(); ++i) sum += static_cast<double>(value(i, begin + c));
      const double row = last ? static_cast<double>(value(value.rows() - 1, begin + c))
                              : sum / static_cast<double>(value.rows());
      mean[static_cast<size_t>(c)] += row / static_cast<double>(texts.size());
      squares += row * row;
    }
    lengths += std::sqrt(squares);
  }
  return mean;
}

TEST(MakeDirection, IsTheDifferenceOfMeans) {
  for (const ScoredFamily& family : scored_families()) {
    const ModelFolder& folder = family.model.folder();
    for (const SiteShape& site : folder.model->sites()) {
      const auto ends = [&](const char* end) { return site.name.ends_with(end); };
      const bool some = ends(".1.output") || ends(".0.self_attention.heads") || ends(".states") ||
                        ends("pooled") || ends("self_attention.contributions.1") ||
                        ends("0.cross_attention.values");
      if (!some) continue;
      SCOPED_TRACE(family.name + " " + site.name);
      for (const bool by_default : {true, false}) {
        const bool last = by_default == is_causal(folder);
        const std::optional<int> head = site.blocks > 1 ? std::optional(site.blocks - 1) : std::nullopt;
        const int64_t width = site.columns / site.blocks;
        double lengths = 0;
        const std::vector<double> toward =
            mean_by_hand(folder, kToward, site.name, site.columns - width, width, last, lengths);
        const std::vector<double> away =
            mean_by_hand(folder, kAway, site.name, site.columns - width, width, last, lengths);
        DirectionOptions options;
        if (!by_default) options.rows = last ? DirectionRows::kLast : DirectionRows::kAll;
        const SteerDirection found = make_direction(
            folder, {.toward = kToward, .away = kAway, .site = site.name, .head = head}, options);
        ASSERT_EQ(found.numbers.cols(), width);
        for (int64_t c = 0; c < width; ++c)
          EXPECT_NEAR(found.numbers(0, c), toward[static_cast<size_t>(c)] - away[static_cast<size_t>(c)],
                      1e-6);
        EXPECT_NEAR(*found.row_length, lengths / 5, 1e-6);
        EXPECT_EQ(found.weights, weights_hash(folder));
        const size_t contribution = site.name.find(".contributions.");
        EXPECT_EQ(found.site, contribution == std::string::npos
                                  ? site.name
                                  : site.name.substr(0, contribution) + ".output");
        EXPECT_EQ(found.head, head);
        check_direction(found, *folder.model, weights_hash(folder));
      }
    }
  }
}

TEST(MakeDirection, OfOneSetIsItsMeanAndMayBeAddedElsewhere) {
  const ModelFolder folder = load_model_folder(golden_of_importance("generate/gpt2"));
  const std::string read = "decoder.0.self_attention.contributions.2";
  double lengths = 0;
  const std::vector<double> mean = mean_by_hand(folder, kToward, read, 0, 21, true, lengths);
  const SteerDirection found =
      make_direction(folder, {.toward = kToward, .site = read, .at = "decoder.2.output"});
  for (int64_t c = 0; c < 21; ++c) EXPECT_NEAR(found.numbers(0, c), mean[static_cast<size_t>(c)], 1e-6);
  EXPECT_EQ(found.site, "decoder.2.output");
  EXPECT_EQ(found.made, "mean of the last rows of 3 texts, read at " + read);
  const SteerDirection head = make_direction(
      folder, {.toward = {"a"}, .away = {"b"}, .site = "decoder.0.self_attention.heads", .head = 1},
      {.rows = DirectionRows::kAll});
  EXPECT_EQ(head.made,
            "mean of the mean row of 1 text less that of the mean row of 1 text, read at "
            "decoder.0.self_attention.heads, head 1");
}

TEST(MakeDirection, ReadsTheModelAsItIsEdited) {
  const ModelFolder folder = load_model_folder(golden_of_importance("generate/gpt2"));
  SiteValues muted, of_second;
  muted.mute("decoder.1.self_attention.*");
  const DirectionTexts texts{.toward = kToward, .away = kAway, .site = "decoder.1.self_attention.heads"};
  EXPECT_THAT([&] { make_direction(folder, texts, {.sites = &muted}); },
              ThrowsMessage<UsageError>(HasSubstr("the direction is 0")));
  of_second.replace({.site = "decoder.1.self_attention.heads", .sequence = 3, .numbers = Tensor(1, 21)});
  SteerDirection plain = make_direction(folder, texts),
                 edited = make_direction(folder, texts, {.sites = &of_second});
  EXPECT_NE(plain.length(), edited.length());  // text 3 is the first of `away`
  EXPECT_TRUE(of_second.unread().empty());
}

TEST(MakeDirection, SaysInOneLineWhatIsWrong) {
  const ModelFolder folder = load_model_folder(golden_of_importance("generate/gpt2"));
  const auto refused = [&](const DirectionTexts& texts, const char* words) {
    EXPECT_THAT([&] { make_direction(folder, texts); }, ThrowsMessage<UsageError>(HasSubstr(words))) << words;
  };
  const std::string site = "decoder.1.output";
  refused({.toward = {}, .site = site}, "`toward`: there are no texts");
  refused({.toward = {"a", " \t"}, .site = site}, "`toward`: text 2 has no words");
  refused({.toward = {"a"}, .away = {""}, .site = site}, "`away`: text 1 has no words");
  refused({.toward = {"a"}, .site = "decoder.9.output"}, "no site 'decoder.9.output'; it has ");
  refused({.toward = {"a"}, .site = "decoder.*.output"},
          "`site`: 'decoder.*.output' stands for several sites");
  refused({.toward = {"a"}, .site = "decoder.1.self_attention.weights.0"},
          "`site`: the columns of 'decoder.1.self_attention.weights.0' are keys");
  refused({.toward = {"a"}, .site = site, .head = 1},
          "`head`: there is no head 1 at 'decoder.1.output'; it has 1");
  refused({.toward = {"a"}, .site = "decoder.1.self_attention.heads", .head = -1},
          "`head`: there is no head -1");
  refused({.toward = {"a"}, .site = "decoder.1.self_attention.heads", .head = 1, .at = site},
          "`at`: 'decoder.1.output' has 21 columns, and the direction that 'decoder.1.self_attention.heads' "
          "gives has 7");
  refused({.toward = {"a"}, .away = {"a"}, .site = site},
          "the direction is 0, since the texts do not differ");
  refused({.toward = {"a"}, .site = site, .at = "decoder.5.output"}, "no site 'decoder.5.output'");
}

}  // namespace
}  // namespace mh
