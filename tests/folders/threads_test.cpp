// A model that infers is const: any number of threads may use one at once, beside the pool. The thread sanitizer runs
// these, too.
#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

#include "multihead/base/thread_pool.h"
#include "multihead/models/encoder_decoder.h"
#include "multihead/models/translator_shape.h"
#include "tests/models/small_batch.h"
#include "tests/support/small_model.h"

namespace mh {
namespace {

class ModelOfManyThreads : public testing::TestWithParam<const char*> {
 protected:
  static constexpr int kThreads = 5;

  ModelOfManyThreads() : shape(small_shape()) {
    shape.geometry = geometry_preset(GetParam(), shape.encoder_heads, shape.d_model);
    set_thread_count(3);
  }
  ~ModelOfManyThreads() override { set_thread_count(before); }

  /// One that has not been used yet: its weights are packed by whoever comes first.
  std::unique_ptr<const EncoderDecoder> fresh() const {
    auto model = std::make_unique<EncoderDecoder>(shape.config());
    model->initialise(19);
    sharpen(*model, 1.5f);
    return model;
  }
  /// Sentences of its own for each thread; the last is long enough to be cut into tasks.
  static Batch sentences(int thread) {
    const auto seed = static_cast<uint64_t>(thread);
    return Batch(random_sources(seed, {thread % 3 + 2, 7, 1, 31, 11, 23, 37}));
  }

  TranslatorShape shape;
  const int before = thread_count();
};

TEST_P(ModelOfManyThreads, AnswersAsItAnswersOne) {
  struct Answer {
    std::vector<float> logits;
    std::vector<std::vector<int32_t>> words;
    bool operator==(const Answer&) const = default;
  };
  const auto ask = [](const EncoderDecoder& model, int thread) {
    const Batch source = sentences(thread), target = sentences(thread + 1);
    return Answer{test::logits_of(model, source, target), test::greedy(model, source, 13, {kPad})};
  };
  std::vector<Answer> expected, found(kThreads);
  const auto alone = fresh();
  for (int thread = 0; thread < kThreads; ++thread) expected.push_back(ask(*alone, thread));

  const auto shared = fresh();
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] { found[static_cast<size_t>(thread)] = ask(*shared, thread); });
  }
  for (auto& thread : threads) thread.join();
  for (size_t thread = 0; thread < found.size(); ++thread) {
    EXPECT_FALSE(found[thread].logits.empty());
    EXPECT_EQ(found[thread], expected[thread]) << "thread " << thread;
  }
}

INSTANTIATE_TEST_SUITE_P(Geometries, ModelOfManyThreads,
                         testing::Values("canonical", "collaborative", "bloem-fourth", "differential",
                                         "talking", "query-key-norm"),
                         [](const auto& tested) {
                           std::string name = tested.param;
                           std::erase(name, '-');
                           return name;
                         });

}  // namespace
}  // namespace mh
