// VocabularyHead::logits_of(), the logits of one token for each row, beside those of all tokens.
#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "multihead/autograd/ops.h"
#include "multihead/autograd/scores.h"
#include "multihead/base/random.h"
#include "multihead/models/vocabulary_head.h"

namespace mh {
namespace {

constexpr int kRows = 5, kWidth = 7, kWords = 11;

Parameter random_parameter(int64_t rows, int64_t columns, uint64_t seed) {
  Parameter made(rows, columns);
  Random random(seed);
  for (int64_t i = 0; i < made.value.size(); ++i) made.value.data()[i] = static_cast<float>(random.normal());
  return made;
}

class LogitsOfTokens : public testing::TestWithParam<std::optional<float>> {};

INSTANTIATE_TEST_SUITE_P(Caps, LogitsOfTokens, testing::Values(std::nullopt, 2.5f));

TEST_P(LogitsOfTokens, AreThoseOfAllTokensWithTheirGradients) {
  const Parameter table = random_parameter(kWords, kWidth, 1), bias = random_parameter(1, kWords, 2),
                  states = random_parameter(kRows, kWidth, 3);
  const VocabularyHead head("decoder", table, &bias, GetParam(), 0.7f);
  const std::vector<int32_t> tokens = {3, 0, 10, 3, 7}, rows = {0, 1, 2, 3, 4};
  for (const Tape::Paths paths : {Tape::Paths::kAll, Tape::Paths::kStream}) {
    std::vector<Tensor> values, gradients;
    for (const bool alone : {false, true}) {
      Tape tape(Tape::Mode::kRecordValues, paths);
      MatrixView x = tape.arena().matrix<float>(kRows, kWidth);
      std::copy_n(states.value.view().data, x.size(), x.data);
      const Tape::Watched watched = tape.watch(tape.constant(x));
      const Var found = alone ? head.logits_of(tape, watched.value, tokens)
                              : ops::pick(tape, head.logits(tape, watched.value), rows, tokens);
      tape.backward(ops::sum(tape, ops::multiply(tape, found, found)));
      values.push_back(copied(found.value()));
      gradients.push_back(copied(watched.gradient));
    }
    for (int64_t i = 0; i < kRows; ++i) {
      EXPECT_NEAR(values[1](i, 0), values[0](i, 0), 1e-5);
      for (int64_t c = 0; c < kWidth; ++c) EXPECT_NEAR(gradients[1](i, c), gradients[0](i, c), 5e-5);
    }
  }
}

TEST(LogitsOfTokensInTraining, AddToTheGradientsOfTheirRows) {
  const Parameter table = random_parameter(kWords, kWidth, 4), states = random_parameter(2, kWidth, 5);
  const VocabularyHead head("decoder", table, nullptr);
  Tape tape(Tape::Mode::kRecord);
  MatrixView x = tape.arena().matrix<float>(2, kWidth);
  std::copy_n(states.value.view().data, x.size(), x.data);
  const std::vector<int32_t> tokens = {6, 6};
  tape.backward(ops::sum(tape, head.logits_of(tape, tape.constant(x), tokens)));
  for (int64_t word = 0; word < kWords; ++word) {
    for (int64_t c = 0; c < kWidth; ++c)
      EXPECT_NEAR(table.gradient_sum()(word, c), word == 6 ? x(0, c) + x(1, c) : 0, 1e-6);
  }
}

}  // namespace
}  // namespace mh
