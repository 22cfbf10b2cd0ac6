#include "multihead/analysis/observe_corpus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "multihead/models/encoder_decoder.h"
#include "tests/support/small_model.h"

namespace mh {
namespace {

// Asks for one attention and notes everything that it is told.
class Listener : public CorpusObserver {
 public:
  explicit Listener(std::string wanted) : wanted_(std::move(wanted)) {}
  void begin_batch(std::span<const int64_t> sentences) override {
    told.insert(told.end(), sentences.begin(), sentences.end());
  }
  bool wants_weights(std::string_view name) const override { return name == wanted_; }
  void weights(const ObservedWeights& observed) override { weights_of.emplace_back(observed.name); }
  void rows(std::string_view name, ProjectedTo to, ConstMatrixView rows) override {
    rows_of[{std::string(name), to}] += rows.rows;
  }

  std::vector<int64_t> told;
  std::vector<std::string> weights_of;
  std::map<std::pair<std::string, ProjectedTo>, int64_t> rows_of;

 private:
  std::string wanted_;
};

TEST(ObserveCorpus, EveryObserverSeesTheWeightsAndTheRowsOfWhatItWants) {
  EncoderDecoder model(small_config());
  model.initialise(3);
  const std::vector<std::vector<int32_t>> sources = {{3, 4, 5, kEnd}, {6, kEnd}, {7, 8, kEnd}};
  const std::vector<std::vector<int32_t>> targets = {{9, 4}, {}, {3, 5, 7, 9}};
  const std::string self = "encoder.0.self_attention", cross = "decoder.0.cross_attention";
  Listener one(self), other(cross);
  CorpusObserver* const observers[] = {&one, &other};
  observe_corpus(model, sources, targets, observers, {.max_batch_tokens = 11});
  EXPECT_THAT(one.told, testing::ElementsAre(0, 1, 2));
  EXPECT_THAT(one.weights_of, testing::ElementsAre(self, self));  // 7 + 3 tokens, then 8
  EXPECT_THAT(other.weights_of, testing::ElementsAre(cross, cross));
  const std::map<std::pair<std::string, ProjectedTo>, int64_t> all_of_self = {
      {{self, ProjectedTo::kQueries}, 9}, {{self, ProjectedTo::kKeysAndValues}, 9}};
  const std::map<std::pair<std::string, ProjectedTo>, int64_t> all_of_cross = {
      {{cross, ProjectedTo::kQueries}, 9}, {{cross, ProjectedTo::kKeysAndValues}, 9}};
  EXPECT_EQ(one.rows_of, all_of_self);
  EXPECT_EQ(other.rows_of, all_of_cross);
}

}  // namespace
}  // namespace mh
