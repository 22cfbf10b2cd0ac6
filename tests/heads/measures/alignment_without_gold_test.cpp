// What leaving out source words costs, beside transformers in double precision (tests/oracles/left_out_goldens.py), and the heads
// that are chosen by it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/batch/batch.h"
#include "multihead/folders/model_folder.h"
#include "multihead/heads/measures/heads_alignment.h"
#include "multihead/heads/measures/left_out_words.h"
#include "multihead/heads/measures/mean_aligner.h"
#include "multihead/io/safetensors.h"
#include "multihead/models/encoder_decoder.h"
#include "tests/heads/measures/synthetic.h"
#include "tests/support/goldens.h"

namespace mh {
namespace {

using test::one_hot;
using test::Synthetic;
using testing::HasSubstr;

class LeftOutGoldens : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Models, LeftOutGoldens,
                         testing::Values("bart/plain", "m2m_100/plain", "marian/gelu_f16", "t5/plain"),
                         [](const auto& of) {
                           std::string name = of.param;
                           std::replace(name.begin(), name.end(), '/', '_');
                           return name;
                         });

/// A sentence whose tokens are words, but for the last one of the source.
CorpusBlock block_of(const std::vector<int32_t>& source, const std::vector<int32_t>& target) {
  CorpusBlock block{.lines = {1}, .source = {.ids = {source}}, .target = {.ids = {target}}};
  WordOfToken source_words(source.size(), -1), target_words(target.size());
  std::iota(source_words.begin(), source_words.end() - 1, 0);
  std::iota(target_words.begin(), target_words.end(), 0);
  block.alignments.source_words = {source_words};
  block.alignments.target_words = {target_words};
  block.alignments.source_sizes = {static_cast<int32_t>(source.size()) - 1};
  block.alignments.target_sizes = {static_cast<int32_t>(target.size())};
  return block;
}

TEST_P(LeftOutGoldens, AreTransformers) {
  const std::string name = GetParam();
  const SafetensorsFile file = SafetensorsFile::open(kGoldens / "left_out.safetensors");
  const auto integers = [&](const char* what) {
    const auto found = file.integers(name + what);
    return std::vector<int32_t>(found.begin(), found.end());
  };
  const std::vector<int32_t> source = integers(".ids"), target = integers(".target");
  std::vector<float> expected(target.size() * (source.size() - 1));
  file.read_floats(name + ".differences", expected);
  const ModelFolder folder = load_model_folder(kGoldens / name);
  for (const int64_t batch : {1, 31, 4096}) {
    const auto found =
        prediction_differences(folder.translator(), block_of(source, target), {.max_batch_tokens = batch});
    ASSERT_EQ(found.size(), 1u);
    ASSERT_EQ(found[0].size(), std::ssize(expected));
    for (int64_t i = 0; i < found[0].size(); ++i)
      EXPECT_NEAR(found[0].data()[i], expected[static_cast<size_t>(i)], 1e-4) << name << " " << i;
  }
}

TEST(LeftOutWords, WordsOfSeveralTokensAreLeftOutTogetherAndAddUp) {
  const ModelFolder folder = load_model_folder(kGoldens / "marian/gelu_f16");
  CorpusBlock block = block_of({5, 3, 7, 11, 0}, {9, 4, 8});
  const Tensor single = prediction_differences(folder.translator(), block)[0];
  block.alignments.target_words = {{0, 0, 1}};
  block.alignments.target_sizes = {3};  // the third word was cut
  const Tensor joined = prediction_differences(folder.translator(), block)[0];
  ASSERT_EQ(joined.rows(), 3);
  for (int64_t s = 0; s < 4; ++s) {
    EXPECT_NEAR(joined(0, s), single(0, s) + single(1, s), 1e-5);
    EXPECT_NEAR(joined(1, s), single(2, s), 1e-5);
    EXPECT_EQ(joined(2, s), 0);
  }
  block.alignments.source_words = {{0, 1, 1, 2, -1}};
  block.alignments.source_sizes = {3};
  const Tensor together = prediction_differences(folder.translator(), block)[0];
  EXPECT_NEAR(together(0, 2), joined(0, 3), 1e-5);
  EXPECT_GT(std::abs(together(0, 1) - joined(0, 1)), 1e-4f);
}

TEST(LeftOutWords, TheLargestFallAboveTheLimitLinks) {
  Tensor differences(3, 2);
  differences(0, 0) = 0.3f, differences(0, 1) = 0.7f;
  differences(1, 0) = 0.05f, differences(1, 1) = -2;
  differences(2, 0) = differences(2, 1) = 0.2f;
  EXPECT_EQ(strongest_differences(differences, 0.1f), (Alignment{{1, 0}, {0, 2}}));
  EXPECT_EQ(strongest_differences(Tensor(2, 0), 0.1f), Alignment());
}

TEST(MeanAligner, LinksByTheMeanOfTheFirstHeadsOfAllLayers) {
  const CorpusBlock block{.alignments = {{}, {{0, 1, -1}}, {{0, 1}}, {2}, {2}}};
  std::vector<std::vector<int32_t>> found;
  MeanAligner aligner({.heads = {{1, 0}, {0, 1}}, .query = AlignedQuery::kReads},
                      [&](size_t sentence, std::span<const std::vector<int32_t>> of_first) {
                        EXPECT_EQ(sentence, 0u);
                        found.assign(of_first.begin(), of_first.end());
                      });
  EXPECT_TRUE(aligner.wants_weights(test::attention_named("decoder.0.cross_attention")));
  EXPECT_FALSE(aligner.wants_weights(test::attention_named("decoder.0.self_attention")));
  EXPECT_FALSE(aligner.wants_weights(test::attention_named("decoder.2.cross_attention")));
  aligner.begin(block);
  // Row 0 has read the start token. Word 0: 0.6 and 0.4, then 0 and 1; word 1 rests on the end token with the first head.
  Synthetic first("decoder.0.cross_attention", 2), last("decoder.1.cross_attention", 1);
  first.add({one_hot({2, 2, 2}, 3), {{1, 0, 0}, {0, 1, 0}, {0, .9, .1}}});
  last.add({{{1, 0, 0}, {.6, .4, 0}, {0, .3, .7}}});
  aligner.weights(first.observed());
  EXPECT_TRUE(found.empty());
  aligner.weights(last.observed());
  EXPECT_EQ(found, (std::vector<std::vector<int32_t>>{{0, -1}, {1, 1}}));
}

const std::vector<std::string> kEnglish{"the small dog sees a cat .",      "two dogs run .",
                                        "the woman reads the old book .",  "a man buys the red car .",
                                        "the children eat fresh apples .", "he knows that she sleeps .",
                                        "my friend buys a small house ."};

AlignmentReport chosen_from(const std::vector<std::string>& lines, int64_t batch = 2048) {
  TextCorpus corpus({.sources = lines});
  return heads_alignment_without_gold(load_model_folder("demo"), corpus,
                                      {.read = {.observe = {.max_batch_tokens = batch}}});
}

void expect_same(const AlignmentReport& a, const AlignmentReport& b) {
  EXPECT_EQ(a.chosen->heads, b.chosen->heads);
  EXPECT_EQ(a.chosen->score.right, b.chosen->score.right);
  EXPECT_EQ(a.baseline.gold, b.baseline.gold);
  ASSERT_EQ(a.aligners.size(), b.aligners.size());
  for (size_t i = 0; i < a.aligners.size(); ++i) EXPECT_EQ(a.aligners[i].right, b.aligners[i].right);
}

TEST(AlignmentWithoutGold, NeitherOrderNorBatchesNorBlankLinesChangeTheChoice) {
  const AlignmentReport report = chosen_from(kEnglish);
  ASSERT_TRUE(report.chosen);
  EXPECT_EQ(report.read.targets, TargetsRead::kGreedy);
  EXPECT_EQ(report.read.sentences, std::ssize(kEnglish));
  EXPECT_EQ(report.aligners.size(), 2u * 2 * (4 + 1));
  EXPECT_LT(report.chosen->score.error_rate(), 0.2);
  EXPECT_LT(report.chosen->score.error_rate(), report.baseline.error_rate());
  std::vector<std::string> other(kEnglish.rbegin(), kEnglish.rend());
  expect_same(report, chosen_from(other));
  expect_same(report, chosen_from(kEnglish, 17));
  other.insert(other.begin() + 2, "");
  expect_same(report, chosen_from(other));
}

TEST(AlignmentWithoutGold, AlignsEveryLineAsTheTokensOfTheSameHeadsDo) {
  const ModelFolder folder = load_model_folder("demo");
  TextCorpus corpus({.sources = {"two dogs run .", "", "the small dog sees a cat ."},
                     .targets = {"zwei Hunde laufen .", "", "der kleine Hund sieht eine Katze ."}});
  const AligningHeads heads{.heads = {{1, 0}, {1, 2}}};
  const auto found = align_words(folder, corpus, heads);
  ASSERT_EQ(found.size(), 3u);
  EXPECT_TRUE(found[1].empty());
  // Every word is a token.
  Batch sources;
  for (const char* line : {"two dogs run .", "the small dog sees a cat ."})
    sources.add(folder.source_tokens().encode_ids(line), 0);
  const std::vector<std::vector<int32_t>> targets{
      folder.target_tokens().encode_ids("zwei Hunde laufen .", false),
      folder.target_tokens().encode_ids("der kleine Hund sieht eine Katze .", false)};
  ASSERT_EQ(targets[1].size(), 7u);
  Tape tape;
  const auto by_tokens =
      align(folder.translator(), {.tape = tape}, sources.view(), targets, {.heads = heads});
  for (size_t i = 0; i < 2; ++i) {
    Alignment expected;
    for (const AlignmentPoint& point : by_tokens[i]) expected.emplace_back(point.source, point.target);
    EXPECT_EQ(found[2 * i], expected);
    EXPECT_GE(expected.size(), 3u);
  }
  EXPECT_THROW(align_words(folder, corpus, {.heads = {{2, 0}}}), UsageError);
  EXPECT_THROW(align_words(folder, corpus, {}), UsageError);
}

TEST(AlignmentWithoutGold, ChoosesByTokensToo) {
  const ModelFolder folder = load_model_folder("demo");
  std::vector<std::vector<int32_t>> sources, targets;
  const std::vector<std::string> german{"der kleine Hund sieht eine Katze .", "zwei Hunde laufen ."};
  for (size_t i = 0; i < german.size(); ++i) {
    sources.push_back(folder.source_tokens().encode_ids(kEnglish[i]));
    targets.push_back(folder.target_tokens().encode_ids(german[i], false));
  }
  const ChosenAligners chosen = choose_aligners(folder.translator(), sources, targets);
  EXPECT_FALSE(chosen.heads.heads.empty());
  EXPECT_LE(chosen.heads.heads.size(), static_cast<size_t>(kMostAligningHeads));
  EXPECT_GT(chosen.score.gold, 5);
  // A pair that counts twice has no word that the texts do not begin with alike: then all are words.
  EXPECT_EQ(
      choose_aligners(folder.translator(), std::vector(2, sources[0]), std::vector(2, targets[0])).score.gold,
      2 * choose_aligners(folder.translator(), std::vector(1, sources[0]), std::vector(1, targets[0]))
              .score.gold);
  EXPECT_THROW(choose_aligners(folder.translator(), sources, std::vector(1, targets[0])), UsageError);
  EXPECT_THROW(choose_aligners(folder.translator(), std::vector(1, std::vector<int32_t>()),
                               std::vector(1, std::vector<int32_t>())),
               UsageError);
}

TEST(AlignmentWithoutGold, RefusesWhatNoHeadCanBeChosenBy) {
  const auto message = [](const ModelFolder& folder, HeadsText text) {
    TextCorpus corpus(std::move(text));
    try {
      heads_alignment_without_gold(folder, corpus);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const ModelFolder demo = load_model_folder("demo");
  EXPECT_THAT(message(demo, {.sources = {"", ""}}), HasSubstr("is empty"));
  EXPECT_THAT(message(demo, {.sources = {"a cat ."}, .targets = {""}}), HasSubstr("no pair has words"));
  EXPECT_THAT(message(load_model_folder(kGoldens / "gpt2/tied"), {.sources = {"a"}}), HasSubstr("gpt2"));
}

TEST(AlignmentWithoutGold, WhileTranslatingTheShortestOfTheFirstLinesCount) {
  const ModelFolder folder = load_model_folder("demo");
  // Line i says "a cat ." i % 3 + 1 times, every tenth nothing; line 100 would be the shortest.
  std::vector<std::vector<int32_t>> sources(101);
  std::vector<int64_t> expected;
  for (size_t i = 0; i < sources.size(); ++i) {
    std::string line = "a cat .";
    for (size_t more = 0; more < i % 3; ++more) line += " a cat .";
    if (i % 10 != 0) sources[i] = folder.source_tokens().encode_ids(line);
    if (i % 10 != 0 && i % 3 < 2) expected.push_back(static_cast<int64_t>(i));
  }
  sources[100] = folder.source_tokens().encode_ids(".");
  ASSERT_EQ(expected.size(), kShortestLines);  // 30 of each length
  std::vector<int64_t> asked;
  const AlignOptions found = aligners_for(folder, sources, {}, [&](std::span<const int64_t> numbers) {
    asked.assign(numbers.begin(), numbers.end());
    Hypothesis one;
    one.tokens = folder.target_tokens().encode_ids("eine Katze .", false);
    return std::vector<std::vector<Hypothesis>>(numbers.size(), {one});
  });
  EXPECT_EQ(asked, expected);
  EXPECT_FALSE(found.heads.heads.empty());
}

TEST(AlignmentWithoutGold, TakesTheFoldersHeadsOrTheMeanOfTheLastLayer) {
  ModelFolder folder = load_model_folder("demo");
  const std::vector<std::vector<int32_t>> sources{folder.source_tokens().encode_ids("a cat .")};
  std::vector<std::string> remarks;
  ObserveHeadsOptions options;
  options.remark = [&](const std::string& line) { remarks.push_back(line); };
  std::vector<int64_t> asked;
  const auto none = [&](std::span<const int64_t> numbers) {
    asked.assign(numbers.begin(), numbers.end());
    return std::vector<std::vector<Hypothesis>>(numbers.size());
  };
  EXPECT_TRUE(aligners_for(folder, sources, options, none).heads.heads.empty());
  EXPECT_EQ(asked, std::vector<int64_t>{0});
  ASSERT_EQ(remarks.size(), 1u);
  EXPECT_THAT(remarks[0], HasSubstr("the mean of the last layer's heads aligns"));
  folder.generation.alignment = AligningHeads{.heads = {{0, 3}}, .query = AlignedQuery::kReads};
  EXPECT_EQ(aligners_for(folder, sources, options, none).heads, *folder.generation.alignment);
  folder.generation.alignment->heads[0] = {0, 4};
  EXPECT_THROW(aligners_for(folder, sources, options, none), UsageError);
}

}  // namespace
}  // namespace mh
