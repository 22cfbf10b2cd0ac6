// Gradients with respect to values through weights that a file has in fewer bits than float32: they are those of the same
// numbers as float32, and read the panels of the forward product.
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "multihead/autograd/affine.h"
#include "multihead/autograd/ops.h"
#include "multihead/autograd/vocabulary.h"
#include "tests/autograd/random_numbers.h"
#include "tests/kernels/random_blocks.h"

namespace mh {
namespace {

using test::random_matrix;

/// Blocks as a file of them gives them to weights.
class SourceOfBlocks : public NumberSource {
 public:
  SourceOfBlocks(BlockType type, int64_t rows, int64_t cols, uint64_t seed)
      : blocks_(type, rows, cols, seed) {}
  const Tensor& numbers() const { return numbers_; }
  void read_rows(int64_t begin, int64_t end, float* to) const override {
    std::memcpy(to, numbers_.view().row(begin),
                static_cast<size_t>((end - begin) * numbers_.cols()) * sizeof(float));
  }
  const BlockMatrix* blocks() const override { return &blocks_.matrix; }

 private:
  RandomBlocks blocks_;
  Tensor numbers_ = blocks_.numbers();
};

/// Numbers so small that sums of products with the largest blocks stay moderate.
Tensor small_numbers(int64_t rows, int64_t cols, uint64_t seed) {
  Tensor numbers = random_matrix<float>(rows, cols, seed);
  for (int64_t i = 0; i < numbers.size(); ++i) numbers.data()[i] *= 1e-6f;
  return numbers;
}

/// The gradient of a number that make() makes of x.
template <class Make>
Tensor gradient_of(Tensor& x, const Make& make) {
  Tape tape(Tape::Mode::kRecordValues);
  const Tape::Watched in = tape.watch(tape.constant(x.view()));
  make(tape, in.value);
  tape.backward();
  Tensor gradient(x.rows(), x.cols());
  for (int64_t i = 0; i < x.rows(); ++i)
    std::memcpy(gradient.view().row(i), in.gradient.row(i), static_cast<size_t>(x.cols()) * sizeof(float));
  return gradient;
}

Var sum_of_squares(Tape& tape, Var y) {
  return ops::sum(tape, ops::multiply(tape, y, y));
}

void expect_same_bits(const Tensor& one, const Tensor& other) {
  ASSERT_EQ(one.size(), other.size());
  for (int64_t i = 0; i < one.size(); ++i) {
    ASSERT_EQ(one.data()[i], other.data()[i]) << i;
    ASSERT_NE(one.data()[i], 0) << i;
  }
}

TEST(SmallWeights, OfBlocksHaveTheGradientsOfTheirNumbers) {
  // Two matrices side by side, whose columns are rows of blocks, and one that leads back.
  const auto a = std::make_shared<SourceOfBlocks>(BlockType::kQ4_1, 37, 96, 1),
             b = std::make_shared<SourceOfBlocks>(BlockType::kQ8_0, 59, 96, 2),
             c = std::make_shared<SourceOfBlocks>(BlockType::kQ5_1, 96, 96, 3);
  Parameter w_a, w_b, w_c, float_a, float_b, float_c;
  w_a.value = Weight(96, 37, a, /*transposed=*/true);
  w_b.value = Weight(96, 59, b, /*transposed=*/true);
  w_c.value = Weight(96, 96, c, /*transposed=*/true);
  float_a.value = Weight(StoredMatrix::of(a->numbers().view()).transposed(), a);
  float_b.value = Weight(StoredMatrix::of(b->numbers().view()).transposed(), b);
  float_c.value = Weight(StoredMatrix::of(c->numbers().view()).transposed(), c);
  const Affine blocks({&w_a, &w_b}, {}), floats({&float_a, &float_b}, {});
  const Affine blocks_back({&w_c}, {}), floats_back({&float_c}, {});
  Tensor x = small_numbers(101, 96, 3);
  const auto gated = [&](const Affine& weights) {
    return gradient_of(x, [&](Tape& tape, Var in) {
      return sum_of_squares(
          tape, gated_affine(tape, in, weights, {.activation = Activation::kSwish, .dropout = {}}));
    });
  };
  expect_same_bits(gated(blocks), gated(floats));
  const auto there_and_back = [&](const Affine& weights, const Affine& back) {
    return gradient_of(x, [&](Tape& tape, Var in) {
      const Var inner = affine(tape, in, weights, {.activation = Activation::kGelu, .dropout = {}});
      return sum_of_squares(tape, affine_residual(tape, inner, back, in, {}, nullptr));
    });
  };
  expect_same_bits(there_and_back(blocks, blocks_back), there_and_back(floats, floats_back));
  EXPECT_EQ(&blocks.weights().gradient().panels, &blocks.weights().packed());  // no second copy
  EXPECT_FALSE(blocks.weights().gradient().transposed);
  EXPECT_TRUE(floats.weights().gradient().transposed);
  EXPECT_TRUE(w_a.value.is_converted());  // nor one of the weight's own
}

TEST(SmallWeights, OfAnOutputLayerHaveTheGradientsOfTheirNumbers) {
  const auto source = std::make_shared<SourceOfBlocks>(BlockType::kQ5_0, 211, 64, 4);
  Parameter table, floats;
  table.value = Weight(211, 64, source, /*transposed=*/false);
  floats.value = Weight(StoredMatrix::of(source->numbers().view()), source);
  const PackedParameters small({&table}, RightFactor::kTransposed),
      large({&floats}, RightFactor::kTransposed);
  Tensor x = small_numbers(29, 64, 5);
  const std::vector<int32_t> targets(29, 7);
  const auto of_logits = [&](const PackedParameters& packed) {
    return gradient_of(
        x, [&](Tape& tape, Var in) { return sum_of_squares(tape, logits(tape, in, {.table = packed})); });
  };
  expect_same_bits(of_logits(small), of_logits(large));
  const auto of_loss = [&](const PackedParameters& packed) {
    VocabularyScratch scratch;
    CrossEntropySums sums;
    return gradient_of(x, [&](Tape& tape, Var in) {
      return cross_entropy(tape, in, {.table = packed}, {.targets = targets}, scratch, sums);
    });
  };
  expect_same_bits(of_loss(small), of_loss(large));
  EXPECT_EQ(&small.gradient().panels, &small.packed());
}

TEST(SmallWeights, OfBFloat16HaveTheGradientsOfTheirNumbersWhateverThePrecision) {
  const auto bits = std::make_shared<std::vector<uint16_t>>();
  Tensor numbers = random_matrix<float>(61, 59, 6);
  for (int64_t i = 0; i < numbers.size(); ++i) {
    bits->push_back(to_bfloat16(numbers.data()[i]));
    numbers.data()[i] = from_bfloat16(bits->back());
  }
  StoredMatrix stored = StoredMatrix::of(std::as_const(numbers).view());
  stored.data = reinterpret_cast<const std::byte*>(bits->data());
  stored.type = NumberType::kBFloat16;
  Parameter small, large;
  large.value = Weight(std::move(numbers));
  const Affine floats({&large}, {});
  Tensor x = random_matrix<float>(5, 61, 7), dy = random_matrix<float>(5, 59, 8);
  const auto gradient = [&](const Affine& weights) {
    return gradient_of(x, [&](Tape& tape, Var in) {
      return ops::sum(tape, ops::multiply(tape, affine(tape, in, weights, {}), tape.constant(dy.view())));
    });
  };
  const Tensor expected = gradient(floats);
  for (const Precision precision : {Precision::kSame, Precision::kNear, Precision::kFast}) {
    small.value = Weight(stored, bits);
    small.precision = precision;
    small.changed();
    const Affine weights({&small}, {});
    expect_same_bits(gradient(weights), expected);
    EXPECT_EQ(weights.weights().gradient().transposed, precision == Precision::kFast);
  }
}

}  // namespace
}  // namespace mh
