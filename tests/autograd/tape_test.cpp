// What a tape records, and the gradients of values that are watched.
#include "multihead/autograd/tape.h"

#include <gmock/gmock.h>

#include <vector>

#include "multihead/autograd/affine.h"
#include "multihead/autograd/ops.h"
#include "multihead/autograd/vocabulary.h"
#include "multihead/base/error.h"
#include "tests/autograd/random_numbers.h"

namespace mh {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

using test::random_matrix;
using test::randomise;

std::vector<float> numbers_of(ConstMatrixView matrix) {
  std::vector<float> numbers;
  for (int64_t i = 0; i < matrix.rows; ++i)
    numbers.insert(numbers.end(), matrix.row(i), matrix.row(i) + matrix.cols);
  return numbers;
}

/// Two layers with a norm, and the sum of what comes out.
struct Layers {
  Parameter w_1{5, 7}, b_1{1, 7}, w_2{7, 5}, b_2{1, 5}, gain{1, 5}, bias{1, 5};
  Affine first{{&w_1}, {&b_1}}, second{{&w_2}, {&b_2}};
  NormParameters norm{.gain = &gain, .bias = &bias};

  Layers() {
    uint64_t seed = 0;
    for (Parameter* parameter : all()) randomise(*parameter, ++seed);
  }
  std::vector<Parameter*> all() { return {&w_1, &b_1, &w_2, &b_2, &gain, &bias}; }
  Var hidden(Tape& tape, Var x) const {
    return affine(tape, x, first, {.activation = Activation::kGelu, .dropout = {}});
  }
  Var after(Tape& tape, Var h, Var x) const {
    const Var y = normalise(tape, affine_residual(tape, h, second, x, {}, &norm), norm);
    return ops::sum(tape, ops::multiply(tape, y, y));
  }
};

TEST(Tape, WatchedValuesHaveTheGradientsThatTrainingPassesOn) {
  Layers layers;
  Tensor x = random_matrix<float>(3, 5, 99);
  const auto gradients = [&](Tape::Mode mode) {
    Tape tape(mode);
    const Tape::Watched in = tape.watch(tape.constant(x.view()));
    const Tape::Watched hidden = tape.watch(layers.hidden(tape, in.value));
    layers.after(tape, hidden.value, in.value);
    tape.backward();
    return std::vector{numbers_of(in.gradient), numbers_of(hidden.gradient)};
  };
  const auto of_values = gradients(Tape::Mode::kRecordValues);
  for (const Parameter* parameter : layers.all()) EXPECT_FALSE(parameter->gradient.exists());
  EXPECT_EQ(gradients(Tape::Mode::kRecord), of_values);
  for (const Parameter* parameter : layers.all()) EXPECT_TRUE(parameter->gradient.exists());
  EXPECT_THAT(of_values[1], testing::Each(testing::Ne(0)));
}

TEST(Tape, WatchingAValueDoesNotChangeOtherGradients) {
  Layers plain, watched;
  Tensor x = random_matrix<float>(3, 5, 99);
  for (Layers* layers : {&plain, &watched}) {
    Tape tape(Tape::Mode::kRecord);
    const Var in = tape.constant(x.view());
    Var hidden = layers->hidden(tape, in);
    if (layers == &watched) hidden = tape.watch(hidden).value;
    layers->after(tape, hidden, in);
    tape.backward();
  }
  for (size_t i = 0; i < plain.all().size(); ++i)
    EXPECT_EQ(numbers_of(plain.all()[i]->gradient.view()), numbers_of(watched.all()[i]->gradient.view()));
}

TEST(Tape, RecordsNothingBeforeTheFirstWatchedValue) {
  Layers layers;
  Tensor x = random_matrix<float>(3, 5, 99);
  Tape tape(Tape::Mode::kRecordValues);
  const Var in = tape.constant(x.view());
  const Var hidden = layers.hidden(tape, in);
  EXPECT_FALSE(tape.recording());
  EXPECT_FALSE(hidden.wants_gradient());
  const Tape::Watched watched = tape.watch(hidden);
  EXPECT_TRUE(tape.recording());
  EXPECT_TRUE(layers.after(tape, watched.value, in).wants_gradient());
  EXPECT_FALSE(layers.hidden(tape, in).wants_gradient());  // it does not depend on the watched value
  tape.clear();
  EXPECT_FALSE(tape.recording());
}

TEST(Tape, GradientsAddUpOverBackwardPasses) {
  Tape tape(Tape::Mode::kRecordValues);
  Tensor x = random_matrix<float>(2, 3, 1);
  const Tape::Watched first = tape.watch(tape.constant(x.view()));
  const Tape::Watched second = tape.watch(ops::scale(tape, first.value, 2.0f));
  const Var sum = ops::sum(tape, second.value), part = ops::block(tape, sum, 0, 1, 0, 1);
  tape.backward(sum);
  tape.backward(part);
  tape.backward();
  EXPECT_THAT(numbers_of(second.gradient), testing::Each(3));
  EXPECT_THAT(numbers_of(first.gradient), testing::Each(6));
}

TEST(Tape, ColumnsAtWhichNoGradientArrivesHaveNone) {
  for (const Tape::Mode mode : {Tape::Mode::kRecord, Tape::Mode::kRecordValues}) {
    Parameter q(3, 2), k(3, 5);
    randomise(q, 1);
    randomise(k, 2);
    const Affine fused({&q, &k}, {});
    Tensor x = random_matrix<float>(4, 3, 3);
    Tape tape(mode);
    const Tape::Watched in = tape.watch(tape.constant(x.view()));
    const Var both = affine(tape, in.value, fused);
    const Var queries = tape.columns(both, 0, 2), keys = tape.columns(both, 2, 7);
    const Var of_keys = ops::sum(tape, keys), of_queries = ops::sum(tape, queries);
    for (int pass = 1; pass < 3; ++pass) {
      tape.backward(of_keys);
      for (int64_t r = 0; r < x.rows(); ++r) {
        for (int64_t c = 0; c < x.cols(); ++c) {
          float sum = 0;
          for (int64_t j = 0; j < 5; ++j) sum += k.value(c, j);
          EXPECT_NEAR(in.gradient(r, c), static_cast<float>(pass) * sum, 1e-5);
        }
      }
      if (mode == Tape::Mode::kRecord) {
        EXPECT_THAT(numbers_of(q.gradient.view()), testing::Each(0));
      }
    }
    tape.backward(of_queries);
    EXPECT_NEAR(in.gradient(0, 0),
                q.value(0, 0) + q.value(0, 1) +
                    2 * (k.value(0, 0) + k.value(0, 1) + k.value(0, 2) + k.value(0, 3) + k.value(0, 4)),
                1e-5);
  }
}

TEST(Tape, CrossEntropyTakesAnyFactorWhereParametersAreFrozen) {
  Parameter table(7, 3);
  randomise(table, 4);
  const PackedParameters packed({&table}, RightFactor::kTransposed);
  const std::vector<int32_t> targets{6, 0, 3, 3, 1};
  Tensor x = random_matrix<float>(5, 3, 5);
  VocabularyScratch scratch;
  CrossEntropySums sums;
  const auto run = [&](Tape& tape, Var states, float scale) {
    return cross_entropy(tape, states, {packed},
                         {.targets = targets, .label_smoothing = 0.1f, .scale = scale}, scratch, sums);
  };
  Tape trained(Tape::Mode::kRecord), frozen(Tape::Mode::kRecordValues);
  const Tape::Watched wanted = trained.watch(trained.constant(x.view()));
  run(trained, wanted.value, 2);
  trained.backward();
  table.gradient.forget();

  const Tape::Watched states = frozen.watch(frozen.constant(x.view()));
  const Var once = run(frozen, states.value, 1);
  const Var total = ops::add(frozen, ops::scale(frozen, once, 5.0f),
                             ops::scale(frozen, run(frozen, states.value, 1), -3.0f));
  frozen.backward(total);
  EXPECT_FALSE(table.gradient.exists());
  for (int64_t i = 0; i < x.size(); ++i)
    EXPECT_NEAR(states.gradient.data[i], wanted.gradient.data[i],
                1e-5 * (1 + std::abs(wanted.gradient.data[i])));

  Tape scaled(Tape::Mode::kRecord);
  ops::scale(scaled, run(scaled, scaled.watch(scaled.constant(x.view())).value, 1), 0.5f);
  EXPECT_THAT([&] { scaled.backward(); }, ThrowsMessage<UsageError>(HasSubstr("its gradient is 0.5")));
}

TEST(Tape, SaysWhatCannotBeDifferentiated) {
  Tensor x = random_matrix<float>(2, 3, 1);
  Tape evaluated;
  EXPECT_THAT([&] { evaluated.watch(evaluated.constant(x.view())); },
              ThrowsMessage<UsageError>(HasSubstr("kRecordValues")));
  EXPECT_THAT([&] { evaluated.backward(); }, ThrowsMessage<UsageError>(HasSubstr("nothing was recorded")));

  Tape tape(Tape::Mode::kRecordValues);
  const Var apart = ops::sum(tape, tape.constant(x.view()));
  tape.backward();  // nothing to do
  const Var doubled = ops::scale(tape, tape.watch(tape.constant(x.view())).value, 2.0f);
  EXPECT_THAT([&] { tape.backward(); }, ThrowsMessage<ShapeError>(HasSubstr("no single number")));
  EXPECT_THAT([&] { tape.backward(doubled); },
              ThrowsMessage<ShapeError>(HasSubstr("[1,1], and its value [2,3]")));
  EXPECT_THAT([&] { tape.backward(apart); },
              ThrowsMessage<ShapeError>(HasSubstr("no gradient flows through")));
}

}  // namespace
}  // namespace mh
