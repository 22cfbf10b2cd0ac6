#include "multihead/heads/measures/heads_compare.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "multihead/autograd/parameter.h"
#include "multihead/base/error.h"
#include "multihead/base/thread_pool.h"
#include "multihead/heads/measures/circuit_weights.h"
#include "multihead/heads/reports/compare_json.h"
#include "multihead/tensor/linear_algebra.h"
#include "tests/heads/small_translator.h"

namespace mh {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

const HeadsText kTexts{.sources = {"the small dog sees a cat", "two dogs run", "a cat"},
                       .targets = {"der kleine hund", "zwei hunde rennen im park", "eine katze"}};

ModelFolder model_of(uint64_t seed) {
  std::vector<std::string> lines = kTexts.sources;
  lines.insert(lines.end(), kTexts.targets.begin(), kTexts.targets.end());
  ModelFolder folder = small_translator(lines, 2);
  folder.translator().initialise(seed);
  folder.path = "model-" + std::to_string(seed);
  return folder;
}

CompareReport compared(const ModelFolder& before, const ModelFolder& after,
                       const CompareOptions& options = {}) {
  TextCorpus corpus(kTexts);
  return heads_compare(before, after, corpus, options);
}

/// The rows of weights of each head, in double.
class AllRows : public CorpusObserver {
 public:
  bool wants_weights(const Model::Attention&) const override { return true; }
  void weights(const BatchWeights& batch) override {
    for (int h = 0; h < batch.heads(); ++h) {
      for (int s = 0; s < batch.sequences(); ++s) {
        const ConstMatrixView a = batch.matrix(s, h);
        for (int64_t i = 0; i < a.rows; ++i)
          rows[batch.attention.name + "." + std::to_string(h)].emplace_back(a.row(i), a.row(i) + a.cols);
      }
    }
  }
  std::map<std::string, std::vector<std::vector<double>>> rows;
};

AllRows rows_of(const ModelFolder& folder) {
  AllRows all;
  CorpusObserver* const observers[] = {&all};
  TextCorpus corpus(kTexts);
  observe_heads(folder, corpus, observers);
  return all;
}

double entropy(const std::vector<double>& p) {
  double sum = 0;
  for (const double x : p) sum -= x > 0 ? x * std::log(x) : 0;
  return sum;
}

TEST(HeadsCompare, DivergencesAndEntropiesAreTheirFormulas) {
  const ModelFolder before = model_of(3), after = model_of(4);
  const CompareReport report = compared(before, after);
  EXPECT_EQ(report.read.sentences, 3);
  EXPECT_EQ(report.after, "model-4");
  ASSERT_EQ(report.heads.size(), 18u);  // three heads of three kinds of attention in two layers
  AllRows p = rows_of(before), q = rows_of(after);
  for (const ChangedHead& head : report.heads) {
    SCOPED_TRACE(head.name());
    const auto &of_p = p.rows[head.name()], &of_q = q.rows[head.name()];
    double divergence = 0, first = 0, second = 0;
    for (size_t i = 0; i < of_p.size(); ++i) {
      std::vector<double> both;
      for (size_t j = 0; j < of_p[i].size(); ++j) both.push_back((of_p[i][j] + of_q[i][j]) / 2);
      first += entropy(of_p[i]), second += entropy(of_q[i]);
      divergence += entropy(both) - (entropy(of_p[i]) + entropy(of_q[i])) / 2;
    }
    const auto count = static_cast<double>(of_p.size());
    EXPECT_NEAR(head.entropy_before, first / count, 1e-5);
    EXPECT_NEAR(head.entropy_after, second / count, 1e-5);
    EXPECT_NEAR(head.divergence.mean, divergence / count, 1e-5);
    EXPECT_GT(head.null_divergence.mean, 0);
    EXPECT_NEAR(head.ratio->mean, head.divergence.mean / head.null_divergence.mean, 1e-9);
  }
}

TEST(HeadsCompare, AModelIsAsItself) {
  for (const ChangedHead& head : compared(model_of(3), model_of(3)).heads) {
    EXPECT_EQ(head.divergence.mean, 0) << head.name();
    EXPECT_EQ(head.entropy_before, head.entropy_after) << head.name();
    EXPECT_GT(head.null_divergence.mean, 0.001) << head.name();  // each is permuted in its own way
    EXPECT_LT(head.qk_change.value(), 1e-7) << head.name();
    EXPECT_LT(head.ov_change.value(), 1e-7) << head.name();
  }
}

// ||W' - W|| / ||W||, whatever basis a head's numbers have.
TEST(HeadsCompare, ChangesOfWeightsAreThoseOfTheirProducts) {
  const ModelFolder before = model_of(3), after = model_of(4);
  const CompareReport report = compared(before, after);
  const CircuitModel first(*before.model), second(*after.model);
  const auto change = [](const DoubleMatrix& w, const DoubleMatrix& v) {
    double difference = 0, all = 0;
    for (int64_t i = 0; i < w.size(); ++i) {
      difference += std::pow(v.data()[i] - w.data()[i], 2);
      all += std::pow(w.data()[i], 2);
    }
    return std::sqrt(difference / all);
  };
  for (const ChangedHead& head : report.heads) {
    const CircuitWeights w = first.weights(head.attention), v = second.weights(head.attention);
    const auto h = static_cast<size_t>(head.head);
    const auto qk = [&](const CircuitWeights& of) {
      return product(of.queries[h].view(), transposed(of.keys[h].view()).view());
    };
    const auto ov = [&](const CircuitWeights& of) {
      return product(of.values[h].view(), of.outputs[h].view());
    };
    EXPECT_NEAR(head.qk_change.value(), change(qk(w), qk(v)), 1e-9) << head.name();
    EXPECT_NEAR(head.ov_change.value(), change(ov(w), ov(v)), 1e-9) << head.name();
  }
}

TEST(HeadsCompare, DependsNeitherOnBatchesNorOnThreads) {
  const ModelFolder before = model_of(3), after = model_of(4);
  const std::string whole = compare_json(compared(before, after), "m");
  CompareOptions small;
  small.observe.observe.max_batch_tokens = 1;
  EXPECT_EQ(compare_json(compared(before, after, small), "m"), whole);
  const int threads = thread_count();
  set_thread_count(1);
  EXPECT_EQ(compare_json(compared(before, after), "m"), whole);
  set_thread_count(threads);
  const auto json = nlohmann::json::parse(whole);
  EXPECT_EQ(json["after"], "model-4");
  EXPECT_EQ(json["heads"].size(), 18u);
  EXPECT_EQ(json["heads"][0]["head"], "encoder.0.self_attention.0");
}

TEST(HeadsCompare, RefusesModelsThatNoTrainingMadeOfEachOther) {
  const ModelFolder before = model_of(3);
  const ModelFolder shallow = small_translator(kTexts.sources, 1);
  EXPECT_THAT([&] { compared(before, shallow); },
              ThrowsMessage<UsageError>(
                  HasSubstr("have not the same heads in the same attentions; compare a model")));
  ModelFolder other = model_of(4);
  const std::vector<std::string> words = {"other words than those of the model before"};
  other.tokenizer = train_bpe(words, {.vocabulary_size = before.tokenizer->size()});
  EXPECT_THAT([&] { compared(before, other); },
              ThrowsMessage<UsageError>(HasSubstr("have other tokenizers")));
}

}  // namespace
}  // namespace mh
