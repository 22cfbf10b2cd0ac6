// How fast each kernel that this machine has multiplies: what the table of kernels/product_kernels.h rests on. Prints JSON, for
// benchmarks/results/kernels.json:
//
//   kernel_speed > benchmarks/results/kernels.json
//
// Kernels that can serve the same contract and weights take turns on one thread; a number is billions of multiply-adds a second in the
// fastest of many rounds, since other programs can only take time, with one row (writing text) and with 96 (a prompt, sentences).
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "benchmarks/beside_peer.h"
#include "multihead/base/block_matrix.h"
#include "multihead/base/thread_pool.h"
#include "multihead/kernels/gemm.h"
#include "multihead/kernels/product_kernels.h"

namespace {

using mh::BlockMatrix, mh::BlockType, mh::NumberType, mh::PackedMatrix, mh::Precision, mh::PrecisionChoice,
    mh::ProductKernel, mh::StoredMatrix, mh::WeightsKind;

constexpr int64_t kSize = 1536;  // K and N: the panels of a product lie in the last cache, if at all
constexpr int64_t kRows[] = {1, 96};
constexpr int kRounds = 40;

/// Weights, as a file has them; what the numbers are does not matter, as long as they are usual ones.
struct Weights {
  std::string name;
  WeightsKind kind;
  NumberType number = NumberType::kFloat32;
  BlockType block = BlockType::kQ8_0;

  PackedMatrix packed(PrecisionChoice precision) const {
    // 0x2C2C is 0.07 in float16, and 0x2C2C2C2C and its upper half are 2e-12.
    std::vector<std::byte> bytes(static_cast<size_t>(kSize * kSize * 4), std::byte{0x2C});
    PackedMatrix made;
    if (kind == WeightsKind::kBlocks) {
      const BlockMatrix matrix{.data = bytes.data(), .type = block, .rows = kSize, .cols = kSize};
      const BlockMatrix* const part = &matrix;
      made.pack_transposed({&part, 1}, precision, [] {});
      return made;
    }
    const StoredMatrix matrix{
        .data = bytes.data(), .type = number, .rows = kSize, .cols = kSize, .row_stride = kSize};
    made.pack({&matrix, 1}, precision);
    return made;
  }
};

const std::vector<Weights>& all_weights() {
  static const std::vector<Weights> all = {
      {.name = "F32", .kind = WeightsKind::kNumbers},
      {.name = "BF16", .kind = WeightsKind::kNumbers, .number = NumberType::kBFloat16},
      {.name = "Q4_0", .kind = WeightsKind::kBlocks, .block = BlockType::kQ4_0},
      {.name = "Q4_1", .kind = WeightsKind::kBlocks, .block = BlockType::kQ4_1},
      {.name = "Q8_0", .kind = WeightsKind::kBlocks, .block = BlockType::kQ8_0},
      {.name = "Q4_K", .kind = WeightsKind::kBlocks, .block = BlockType::kQ4_K},
      {.name = "Q6_K", .kind = WeightsKind::kBlocks, .block = BlockType::kQ6_K},
  };
  return all;
}

/// Of products of so many rows with each, in turns.
std::vector<double> speeds(const std::vector<PackedMatrix>& each, int64_t rows) {
  const std::vector<float> a(static_cast<size_t>(rows * kSize), 0.5f);
  std::vector<float> c(a.size());
  const int64_t calls = std::max<int64_t>(1, 48 / rows);
  std::vector<double> seconds(each.size(), std::numeric_limits<double>::infinity());
  for (int round = 0; round <= kRounds; ++round) {
    for (size_t i = 0; i < each.size(); ++i) {
      const mh::Stopwatch watch;
      for (int64_t call = 0; call < calls; ++call)
        mh::multiply(mh::ConstMatrixView(a.data(), rows, kSize), each[i],
                     mh::MatrixView(c.data(), rows, kSize));
      if (round > 0) seconds[i] = std::min(seconds[i], watch.seconds());
    }
  }
  std::vector<double> found;
  for (const double fastest : seconds)
    found.push_back(static_cast<double>(calls * rows * kSize * kSize) / fastest / 1e9);
  return found;
}

std::string processor_name() {
  std::ifstream info("/proc/cpuinfo");
  std::string family, model, name;
  for (std::string line; std::getline(info, line) && !line.empty();) {
    const auto value = [&] { return line.substr(std::min(line.size(), line.find(':') + 2)); };
    if (line.starts_with("cpu family")) family = value();
    if (line.starts_with("model\t")) model = value();
    if (line.starts_with("model name")) name = value();
  }
  return fmt::format("{}, family {}, model {}", name, family, model);
}

int run(int, char**) {
  mh::set_thread_count(1);
  const mh::Features here = mh::processor_features();
  std::string features, products;
  for (const auto& [name, feature] : mh::kFeatureNames) {
    if (here.has(feature)) features += fmt::format("{}\"{}\"", features.empty() ? "" : ", ", name);
  }
  for (const auto& [contract, precision] : mh::kPrecisionNames) {
    for (const Weights& weights : all_weights()) {
      const std::vector<ProductKernel> kernels = mh::kernels_of(precision, weights.kind, here);
      std::vector<PackedMatrix> packed;
      for (const ProductKernel kernel : kernels) packed.push_back(weights.packed({precision, kernel}));
      std::vector<std::vector<double>> of_rows;
      for (const int64_t rows : kRows) of_rows.push_back(speeds(packed, rows));
      for (size_t i = 0; i < kernels.size(); ++i) {
        std::string numbers;
        for (size_t r = 0; r < of_rows.size(); ++r)
          numbers += fmt::format(", \"rows_{}\": {:.1f}", kRows[r], of_rows[r][i]);
        products += fmt::format(
            "{}\n  {{\"contract\": \"{}\", \"weights\": \"{}\", \"kind\": \"{}\", \"kernel\": \"{}\"{}}}",
            products.empty() ? "" : ",", contract, weights.name, name_of(weights.kind, mh::kWeightsKindNames),
            name_of(kernels[i], mh::kProductKernelNames), numbers);
      }
    }
  }
  fmt::print(
      "{{\n \"processor\": \"{}\",\n \"features\": [{}],\n \"threads\": {},\n \"unit\": \"billions of "
      "multiply-adds a second\",\n \"products\": [{}\n ]\n}}\n",
      processor_name(), features, mh::thread_count(), products);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return mh::run_beside_peer("kernel_speed", run, argc, argv);
}
