// Products of each precision with weights of each type: how exact they are, and what their panels are.
#include "multihead/kernels/packed_matrix.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "multihead/base/random.h"
#include "multihead/kernels/gemm.h"
#include "multihead/kernels/product_kernels.h"
#include "multihead/kernels/simd.h"
#include "multihead/tensor/tensor.h"
#include "tests/kernels/on_target.h"
#include "tests/kernels/random_blocks.h"

namespace mh {
namespace {

Tensor normal(int64_t rows, int64_t cols, uint64_t seed) {
  Tensor t(rows, cols);
  Random random(seed);
  for (int64_t i = 0; i < t.size(); ++i) t.data()[i] = static_cast<float>(random.normal());
  return t;
}

/// A matrix stored as one of the types.
struct Stored {
  std::vector<uint16_t> bits;
  Tensor floats;
  StoredMatrix matrix;

  Stored(NumberType type, int64_t rows, int64_t cols, uint64_t seed) : floats(normal(rows, cols, seed)) {
    matrix = StoredMatrix::of(std::as_const(floats).view());
    if (type == NumberType::kFloat32) return;
    for (int64_t i = 0; i < floats.size(); ++i)
      bits.push_back(type == NumberType::kBFloat16 ? to_bfloat16(floats.data()[i])
                                                   : to_float16(floats.data()[i]));
    matrix.data = reinterpret_cast<const std::byte*>(bits.data());
    matrix.type = type;
  }
};

class Precisions : public testing::TestWithParam<std::string> {
 private:
  OnTarget on_{GetParam()};
};

TEST_P(Precisions, AreAsExactAsTheySay) {
  for (const NumberType type : {NumberType::kFloat32, NumberType::kBFloat16, NumberType::kFloat16}) {
    const Stored a(type, 211, 67, 1), b(type, 211, 130, 2);
    const std::vector<StoredMatrix> parts = {a.matrix, b.matrix};
    for (const int64_t rows : {1, 5, 97}) {
      const Tensor x = normal(rows, 211, 3);
      for (const Precision precision : {Precision::kSame, Precision::kNear, Precision::kFast}) {
        PackedMatrix packed;
        packed.pack(parts, precision);
        Tensor y(rows, 197);
        multiply(x.view(), packed, y.view());
        double error = 0;
        for (int64_t i = 0; i < rows; ++i) {
          for (int64_t j = 0; j < 197; ++j) {
            double right = 0;
            for (int64_t k = 0; k < 211; ++k)
              right += static_cast<double>(x(i, k)) * (j < 67 ? a.matrix(k, j) : b.matrix(k, j - 67));
            error += (y(i, j) - right) * (y(i, j) - right);
          }
        }
        const double relative = std::sqrt(error / static_cast<double>(rows * 197) / 211);  // of a typical sum
        const double bound = precision == Precision::kSame   ? 1e-6
                             : precision == Precision::kNear ? 0.004
                                                             : 0.02;
        EXPECT_LT(relative, bound) << "type " << static_cast<int>(type) << ", " << rows << " rows";
      }
    }
  }
}

/// Packs matrices of these types side by side.
void pack_types(PackedMatrix& packed, const std::vector<NumberType>& types, Precision precision) {
  std::vector<Stored> stored;
  for (const NumberType type : types) stored.emplace_back(type, 35, 3, 1);
  std::vector<StoredMatrix> parts;
  for (const Stored& one : stored) parts.push_back(one.matrix);
  packed.pack(parts, precision);
}

TEST_P(Precisions, ChooseTheirPanels) {
  const auto kind = [](const std::vector<NumberType>& types, Precision precision) {
    PackedMatrix packed;
    pack_types(packed, types, precision);
    EXPECT_EQ(packed.kernel(), kernel_for(precision, WeightsKind::kNumbers));
    EXPECT_EQ(packed.rounds_rows(), packed.kernel() != ProductKernel::kFloat32);
    return packed.kind();
  };
  constexpr NumberType kFloat = NumberType::kFloat32, kBrain = NumberType::kBFloat16,
                       kHalf = NumberType::kFloat16;
  EXPECT_EQ(kind({kFloat}, Precision::kSame), PanelKind::kFloat32);
  EXPECT_EQ(kind({kBrain, kBrain}, Precision::kSame), PanelKind::kHalves);
  EXPECT_EQ(kind({kHalf}, Precision::kSame), PanelKind::kHalves);
  EXPECT_EQ(kind({kHalf, kBrain}, Precision::kSame), PanelKind::kFloat32);
  EXPECT_EQ(kind({kFloat, kHalf}, Precision::kSame), PanelKind::kFloat32);
  for (const NumberType type : {kFloat, kBrain, kHalf})
    EXPECT_EQ(kind({type}, Precision::kFast), PanelKind::kChannels);
  const bool dots = kernel_for(Precision::kNear, WeightsKind::kNumbers) == ProductKernel::kBFloat16Dots;
  EXPECT_EQ(kind({kFloat}, Precision::kNear), dots ? PanelKind::kHalves : PanelKind::kFloat32);
  EXPECT_EQ(kind({kHalf, kFloat}, Precision::kNear), dots ? PanelKind::kHalves : PanelKind::kFloat32);
  EXPECT_EQ(kind({kHalf, kHalf}, Precision::kNear), PanelKind::kHalves);
}

// What a form says before anything is packed is what packing takes.
TEST_P(Precisions, TakeTheBytesOfTheirForm) {
  constexpr NumberType kFloat = NumberType::kFloat32, kBrain = NumberType::kBFloat16,
                       kHalf = NumberType::kFloat16;
  PackedMatrix packed;  // of one size after another: memory that is kept must not count
  for (const Precision contract : {Precision::kFast, Precision::kSame, Precision::kNear}) {
    for (const std::vector<NumberType>& types :
         {std::vector{kFloat}, {kBrain}, {kHalf}, {kHalf, kBrain}, {kFloat, kFloat, kFloat}}) {
      for (const int64_t rows : {131, 1, 34}) {
        std::vector<Stored> stored;
        for (const NumberType type : types) stored.emplace_back(type, rows, 67 + 13 * std::ssize(stored), 1);
        std::vector<StoredMatrix> parts;
        for (const Stored& one : stored) parts.push_back(one.matrix);
        for (const ProductKernel kernel : kernels_of(contract, WeightsKind::kNumbers, processor_features())) {
          const PackedForm form = packed_form(parts, {contract, kernel});
          packed.pack(parts, {contract, kernel});
          EXPECT_EQ(packed.bytes(), form.bytes);
          EXPECT_EQ(packed.kind(), form.kind);
          EXPECT_EQ(packed.kernel(), kernel);
          EXPECT_EQ(form.kernel, kernel);
          EXPECT_GE(form.bytes, rows * 67 *
                                    (form.kind == PanelKind::kFloat32  ? 4
                                     : form.kind == PanelKind::kHalves ? 2
                                                                       : 1));
        }
      }
    }
  }
}

TEST_P(Precisions, TakeTheBytesOfTheFormOfBlocks) {
  for (const BlockType type : kBlockTypes) {
    const RandomBlocks a(type, 61, 512, 1), b(type, 151, 512, 2);
    const std::vector<const BlockMatrix*> parts = {&a.matrix, &b.matrix};
    for (const Precision contract : {Precision::kSame, Precision::kNear, Precision::kFast}) {
      for (const ProductKernel kernel : kernels_of(contract, WeightsKind::kBlocks, processor_features())) {
        PackedMatrix packed;
        packed.pack_transposed(parts, {contract, kernel}, [] {});
        const PackedForm form = packed_form(parts, {contract, kernel});
        EXPECT_EQ(packed.bytes(), form.bytes);
        EXPECT_EQ(packed.kernel(), kernel);
        EXPECT_EQ(form.kind, PanelKind::kBlocks);
        EXPECT_GE(form.bytes, (61 + 151) * a.matrix.row_bytes());
      }
    }
  }
}

// A kernel that is chosen serves where it can; what it cannot serve is as without.
TEST_P(Precisions, UseTheKernelThatIsChosen) {
  const Features here = processor_features();
  const Stored numbers(NumberType::kFloat32, 64, 67, 1);
  const RandomBlocks blocks(BlockType::kQ8_0, 61, 64, 1);
  const std::vector<StoredMatrix> of_numbers = {numbers.matrix};
  const std::vector<const BlockMatrix*> of_blocks = {&blocks.matrix};
  for (const Precision contract : {Precision::kSame, Precision::kNear, Precision::kFast}) {
    for (const ProductKernel kernel : kernels_of(contract, std::nullopt, here)) {
      const auto expected = [&](WeightsKind kind) {
        const std::vector<ProductKernel> all = kernels_of(contract, kind, here);
        const bool serves = std::find(all.begin(), all.end(), kernel) != all.end();
        return serves ? kernel : kernel_for(contract, kind);
      };
      EXPECT_EQ(packed_form(of_numbers, {contract, kernel}).kernel, expected(WeightsKind::kNumbers));
      EXPECT_EQ(packed_form(of_blocks, {contract, kernel}).kernel, expected(WeightsKind::kBlocks));
    }
  }
}

TEST_P(Precisions, SayWhetherPanelsAreExact) {
  const auto is_exact = [](const std::vector<NumberType>& types, Precision precision) {
    PackedMatrix packed;
    pack_types(packed, types, Precision::kFast);
    EXPECT_FALSE(packed.is_exact());
    pack_types(packed, types, precision);
    return packed.is_exact();
  };
  constexpr NumberType kFloat = NumberType::kFloat32, kBrain = NumberType::kBFloat16,
                       kHalf = NumberType::kFloat16;
  for (const NumberType type : {kFloat, kBrain, kHalf}) EXPECT_TRUE(is_exact({type}, Precision::kSame));
  EXPECT_TRUE(is_exact({kHalf, kBrain}, Precision::kSame));  // as float32
  EXPECT_TRUE(is_exact({kBrain, kBrain}, Precision::kNear));
  const bool rounds = kernel_for(Precision::kNear, WeightsKind::kNumbers) == ProductKernel::kBFloat16Dots;
  EXPECT_EQ(is_exact({kHalf}, Precision::kNear), !rounds);
  EXPECT_EQ(is_exact({kFloat, kBrain}, Precision::kNear), !rounds);
  EXPECT_EQ(is_exact({kBrain, kFloat}, Precision::kNear), !rounds);
}

INSTANTIATE_TEST_SUITE_P(Targets, Precisions, testing::ValuesIn(dispatch_targets()),
                         [](const auto& tested) { return tested.param; });

// For whoever asks for no precision, panels are float32 whatever the numbers are stored as.
TEST(PackedMatrixKind, IsFloat32WithoutAPrecision) {
  const Stored halves(NumberType::kBFloat16, 35, 3, 1);
  PackedMatrix packed;
  packed.pack({&halves.matrix, 1}, Precision::kFast);
  packed.pack(halves.matrix);
  EXPECT_EQ(packed.kind(), PanelKind::kFloat32);
  EXPECT_EQ(packed.precision(), Precision::kSame);
  EXPECT_FALSE(packed.rounds_rows());
}

}  // namespace
}  // namespace mh
