#include "multihead/heads/measures/heads_similar.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "multihead/base/random.h"
#include "multihead/heads/reports/pictures/draw_similar.h"
#include "multihead/heads/reports/similar_json.h"
#include "multihead/models/causal_model.h"
#include "multihead/models/encoder_model.h"
#include "tests/heads/reports/json_page.h"
#include "tests/heads/reports/well_formed.h"
#include "tests/heads/small_translator.h"
#include "tests/support/small_model.h"

namespace mh {
namespace {

using testing::Contains;
using testing::HasSubstr;
using DoubleRow = std::vector<double>;

/// Keeps the weights of all heads of a kind, in double and in order, and the same permuted.
class KeptRows : public CorpusObserver {
 public:
  KeptRows(const Model& model, AttentionKind kind, uint64_t seed) : model_(model), kind_(kind), seed_(seed) {}
  bool wants_weights(const Model::Attention& attention) const override {
    return attention.place.kind == kind_;
  }
  void weights(const BatchWeights& batch) override {
    const AttentionPlace place = batch.attention.place;
    const Mask mask = model_.mask(batch.attention.name);
    for (int h = 0; h < batch.heads(); ++h) {
      std::vector<DoubleRow>&real_rows = real[{place.layer, h}], &null_rows = null[{place.layer, h}];
      for (int s = 0; s < batch.sequences(); ++s) {
        const ConstMatrixView a = batch.matrix(s, h);
        const uint64_t of_head = permutation_seed(seed_, batch.sentences[static_cast<size_t>(s)], place, h);
        for (int64_t i = 0; i < a.rows; ++i) {
          DoubleRow row(a.row(i), a.row(i) + a.cols);
          real_rows.push_back(row);
          const Mask::Range seen = mask.visible(i, a.rows, a.cols);
          DoubleRow visible(row.begin() + seen.begin, row.begin() + seen.end);
          Random random(of_head, static_cast<uint64_t>(i));
          random.shuffle(visible);
          std::copy(visible.begin(), visible.end(), row.begin() + seen.begin);
          null_rows.push_back(row);
        }
      }
    }
  }
  using OfHeads = std::map<std::pair<int, int>, std::vector<DoubleRow>>;
  OfHeads real, null;

 private:
  const Model& model_;
  AttentionKind kind_;
  uint64_t seed_;
};

double mean_divergence(const std::vector<DoubleRow>& a, const std::vector<DoubleRow>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    for (size_t j = 0; j < a[i].size(); ++j) {
      const double m = (a[i][j] + b[i][j]) / 2;
      if (a[i][j] > 0) sum += a[i][j] * std::log(a[i][j] / m) / 2;
      if (b[i][j] > 0) sum += b[i][j] * std::log(b[i][j] / m) / 2;
    }
  }
  return sum / static_cast<double>(a.size());
}

void expect_brute_force(const Model& model, const std::vector<std::vector<int32_t>>& sources,
                        const std::vector<std::vector<int32_t>>& targets, AttentionKind kind) {
  constexpr uint64_t kSeed = 23;
  SimilarHeadsObserver observer(compared_attentions(model), {.seed = kSeed});
  KeptRows kept(model, kind, kSeed);
  CorpusObserver* const observers[] = {&observer, &kept};
  observe_corpus(model, sources, targets, observers, {.max_batch_tokens = 31});
  const std::vector<ComparedHeads> kinds = observer.kinds();
  const auto found =
      std::find_if(kinds.begin(), kinds.end(), [&](const auto& of) { return of.kind == kind; });
  ASSERT_NE(found, kinds.end());
  ASSERT_EQ(found->heads.size(), kept.real.size());
  std::vector<const std::vector<DoubleRow>*> real, null;
  for (const auto& [place, rows] : kept.real) real.push_back(&rows);
  for (const auto& [place, rows] : kept.null) null.push_back(&rows);
  EXPECT_EQ(static_cast<size_t>(found->queries), real[0]->size());
  double within = 0, between = 0;
  int pairs = 0, others = 0;
  for (size_t g = 0; g < real.size(); ++g) {
    for (size_t h = g + 1; h < real.size(); ++h) {
      const double divergence = mean_divergence(*real[g], *real[h]);
      EXPECT_NEAR(found->divergence_of(g, h), divergence, 1e-5) << g << " " << h;
      EXPECT_NEAR(found->null_of(g, h), mean_divergence(*null[g], *null[h]), 1e-5) << g << " " << h;
      const bool one_layer = found->heads[g].attention == found->heads[h].attention;
      (one_layer ? within : between) += divergence;
      ++(one_layer ? pairs : others);
    }
  }
  EXPECT_NEAR(found->within_layers->divergence.mean, within / pairs, 1e-5);
  EXPECT_NEAR(found->between_layers->divergence.mean, between / others, 1e-5);
}

std::vector<std::vector<int32_t>> some_sentences(uint64_t seed, bool with_end) {
  auto sentences = random_sources(seed, {7, 2, 13, 3, 11, 5, 17});
  for (auto& sentence : sentences) {
    if (!with_end) sentence.pop_back();
  }
  return sentences;
}

TEST(HeadSimilarity, IsThatOfFloat64OnATranslator) {
  EncoderDecoder model(small_shape().config());
  model.initialise(3);
  sharpen(model, 4);
  for (const AttentionKind kind :
       {AttentionKind::kEncoderSelf, AttentionKind::kDecoderSelf, AttentionKind::kCross})
    expect_brute_force(model, some_sentences(5, true), some_sentences(7, false), kind);
}

std::vector<LayerConfig> layers_with_windows(const StackMask& window) {
  LayerConfig layer{.self_attention = {.heads = 6, .key_heads = 2}, .feed_forward = {.d_ff = 19}};
  std::vector<LayerConfig> layers(3, layer);
  layers[1].mask = window;
  layers[2].self_attention = {.heads = 5};
  return layers;
}

void fill_sharply(Model& model) {
  Random random(9);
  model.visit([&](const std::string& name, Parameter& parameter) {
    if (name.find("norm") != std::string::npos) return;
    const MatrixView view = parameter.value.view();
    for (int64_t i = 0; i < view.rows; ++i) {
      for (int64_t j = 0; j < view.cols; ++j) view(i, j) = static_cast<float>(random.normal());
    }
    parameter.changed();
  });
}

TEST(HeadSimilarity, IsThatOfFloat64OnACausalModelWithSharedKeysAndAWindow) {
  CausalConfig config;
  config.embedding = {.vocabulary = 37, .d_model = 30};
  config.max_positions = 19;
  config.stack = {.name = "decoder",
                  .d_model = 30,
                  .layers = layers_with_windows(StackMask::sliding_window(3)),
                  .mask = StackMask::causal()};
  CausalModel model(config);
  fill_sharply(model);
  expect_brute_force(model, some_sentences(5, true), {}, AttentionKind::kDecoderSelf);
}

TEST(HeadSimilarity, IsThatOfFloat64OnAnEncoderWithAWindow) {
  EncoderConfig config;
  config.embedding = {.vocabulary = 37, .d_model = 30};
  config.max_positions = 19;
  config.stack = {.name = "encoder", .d_model = 30, .layers = layers_with_windows(StackMask::local(2))};
  EncoderModel model(config);
  fill_sharply(model);
  expect_brute_force(model, some_sentences(5, true), {}, AttentionKind::kEncoderSelf);
}

class HeadsSimilar : public testing::Test {
 protected:
  HeadsSimilar() : folder(small_translator(text.sources, 2)) {}

  HeadsText text{.sources = {"the small dog sees a cat", "a cat runs", "dogs see the cats and run"},
                 .targets = {"a cat", "dogs run", "the cat and the dog"}};
  ModelFolder folder;
};

TEST_F(HeadsSimilar, NamesTheNearestHeadsAndTheClusters) {
  TextCorpus corpus(text);
  const SimilarReport similar = heads_similar(folder, corpus, {.nearest = 2, .cluster_ratio = 1e9});
  EXPECT_EQ(similar.read.sentences, 3);
  ASSERT_EQ(similar.kinds.size(), 3u);
  const SimilarKind& kind = similar.kinds[0];
  ASSERT_EQ(kind.compared.heads.size(), 6u);
  for (size_t h = 0; h < 6; ++h) {
    ASSERT_EQ(kind.nearest[h].size(), 2u);
    std::vector<double> others;
    for (size_t g = 0; g < 6; ++g) {
      if (g != h) others.push_back(kind.compared.divergence_of(h, g));
    }
    std::sort(others.begin(), others.end());
    EXPECT_EQ(kind.compared.divergence_of(h, static_cast<size_t>(kind.nearest[h][0])), others[0]);
    EXPECT_EQ(kind.compared.divergence_of(h, static_cast<size_t>(kind.nearest[h][1])), others[1]);
  }
  EXPECT_THAT(kind.clusters, testing::ElementsAre(10)) << "everything is one cluster with such a limit";
  EXPECT_EQ(kind.null_heights.size(), 5u);
  corpus.restart();
  EXPECT_TRUE(heads_similar(folder, corpus, {.cluster_ratio = 0}).kinds[0].clusters.empty());
}

TEST_F(HeadsSimilar, JsonHasTheFieldsThatThePageDescribes) {
  TextCorpus corpus(text);
  const SimilarReport similar = heads_similar(folder, corpus, {.cluster_ratio = 1e9});
  const auto all = nlohmann::json::parse(similar_json(similar, "small"));
  EXPECT_EQ(all["model"], "small");
  EXPECT_EQ(all["kinds"][1]["kind"], "decoder self-attention");
  EXPECT_EQ(all["kinds"][1]["heads"][4]["head"], "decoder.1.self_attention.1");
  EXPECT_EQ(all["kinds"][1]["divergence"][4][5].get<double>(), similar.kinds[1].compared.divergence_of(4, 5));
  EXPECT_TRUE(all["kinds"][0]["shared_keys"].is_null());
  std::set<std::string> keys;
  collect_keys(all, keys);
  const std::set<std::string> described = names_on_the_page("The JSON of heads similar");
  keys.insert({"sharing", "others", "null_difference"});  // of shared keys, which this model has not
  for (const std::string& key : keys) EXPECT_THAT(described, Contains(key));
  for (const std::string& name : described) {
    const bool is_a_field = name.find_first_of(" -./():") == std::string::npos && name != "given";
    if (is_a_field) {
      EXPECT_THAT(keys, Contains(name));
    }
  }
}

TEST_F(HeadsSimilar, OfOneSentenceHasNoIntervals) {
  const HeadsText one{.sources = {text.sources[0]}, .targets = {text.targets[0]}};
  TextCorpus corpus(one);
  const auto all = nlohmann::json::parse(similar_json(heads_similar(folder, corpus), "small"));
  EXPECT_TRUE(all["kinds"][0]["within_layers"]["ratio"]["half"].is_null());
  EXPECT_GT(all["kinds"][0]["within_layers"]["divergence"]["mean"], 0);
}

TEST_F(HeadsSimilar, PictureHasEveryHeadOnBothSides) {
  TextCorpus corpus(text);
  const std::string svg = draw_similar(heads_similar(folder, corpus));
  expect_well_formed(svg);
  EXPECT_EQ(count(svg, ">1.2</text>"), 2u * 3) << "on two sides of three matrices";
  EXPECT_EQ(count(svg, "<title>encoder.1.self_attention.2</title>"), 1u);
  EXPECT_THAT(svg, HasSubstr("encoder self-attention: 6 heads"));
  EXPECT_THAT(svg, HasSubstr("cross-attention: 6 heads"));
}

TEST(DrawSimilar, TakesOneHead) {
  SimilarReport similar;
  SimilarKind& kind = similar.kinds.emplace_back();
  kind.compared.heads = {{.attention = "decoder.0.self_attention", .head = 0}};
  kind.compared.divergence = kind.compared.null_divergence = {0};
  kind.tree.points = 1;
  expect_well_formed(draw_similar(similar));
}

}  // namespace
}  // namespace mh
