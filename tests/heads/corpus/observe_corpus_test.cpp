#include "multihead/heads/corpus/observe_corpus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "multihead/models/encoder_decoder.h"
#include "tests/support/small_model.h"

namespace mh {
namespace {

// Asks for one attention and notes everything that it is told.
class Listener : public CorpusObserver {
 public:
  explicit Listener(std::string wanted) : wanted_(std::move(wanted)) {}
  bool wants_weights(const Model::Attention& attention) const override { return attention.name == wanted_; }
  void weights(const BatchWeights& batch) override {
    sentences.insert(sentences.end(), batch.sentences.begin(), batch.sentences.end());
    weights_of.push_back(batch.attention.name);
    rows += batch.outputs.rows;
    keys += batch.values.rows;
    for (int s = 0; s < batch.sequences(); ++s) {
      for (int h = 0; h < batch.heads(); ++h) {
        const ConstMatrixView a = batch.matrix(s, h);
        shapes.insert({a.rows, a.cols});
      }
    }
  }

  std::vector<int64_t> sentences;
  std::vector<std::string> weights_of;
  std::set<std::pair<int64_t, int64_t>> shapes;
  int64_t rows = 0, keys = 0;

 private:
  std::string wanted_;
};

TEST(ObserveCorpus, EveryObserverSeesWhatItWants) {
  EncoderDecoder model(small_shape().config());
  model.initialise(3);
  const std::vector<std::vector<int32_t>> sources = {{3, 4, 5, kEnd}, {6, kEnd}, {7, 8, kEnd}};
  const std::vector<std::vector<int32_t>> targets = {{9, 4}, {}, {3, 5, 7, 9}};
  const std::string self = "encoder.0.self_attention", cross = "decoder.0.cross_attention";
  Listener one(self), other(cross);
  CorpusObserver* const observers[] = {&one, &other};
  observe_corpus(model, sources, targets, observers, {.max_batch_tokens = 11});
  for (const Listener* listener : {&one, &other}) {
    EXPECT_THAT(listener->sentences, testing::ElementsAre(0, 1, 2));
    EXPECT_EQ(listener->rows, 9);
    EXPECT_EQ(listener->keys, 9);
  }
  EXPECT_THAT(one.weights_of, testing::ElementsAre(self, self));  // 7 + 3 tokens, then 8
  EXPECT_THAT(other.weights_of, testing::ElementsAre(cross, cross));
  EXPECT_THAT(one.shapes, testing::ElementsAre(std::pair(2, 2), std::pair(3, 3), std::pair(4, 4)));
  EXPECT_THAT(other.shapes, testing::ElementsAre(std::pair(1, 2), std::pair(3, 4), std::pair(5, 3)));
}

}  // namespace
}  // namespace mh
