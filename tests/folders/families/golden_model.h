// Reads what an oracle computed with a small model folder: sequences, and numbers row by row.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "multihead/batch/batch.h"
#include "multihead/io/safetensors.h"
#include "tests/support/places.h"

namespace mh::test {

struct GoldenModel {
  GoldenModel(const std::string& family, const std::string& name)
      : folder(std::filesystem::path(goldens_folder()) / family / name),
        file(SafetensorsFile::open(folder.parent_path() / (name + ".golden.safetensors"))) {
    const auto lengths = file.integers("lengths"), ids = file.integers("ids");
    size_t at = 0;
    for (const int64_t length : lengths) {
      const size_t end = at + static_cast<size_t>(length);
      sequences.emplace_back(ids.begin() + static_cast<ptrdiff_t>(at),
                             ids.begin() + static_cast<ptrdiff_t>(end));
      at = end;
    }
  }
  std::filesystem::path folder;
  SafetensorsFile file;
  std::vector<std::vector<int32_t>> sequences;

  /// The largest difference, as a share of the largest value, is below 1e-5.
  void expect_near(ConstMatrixView found, const char* what) const {
    const std::vector<float> expected = file.floats(what);
    ASSERT_EQ(static_cast<size_t>(found.size()), expected.size()) << what;
    double most = 0, difference = 0;
    for (int64_t i = 0; i < found.rows; ++i) {
      for (int64_t j = 0; j < found.cols; ++j) {
        const double wanted = expected[static_cast<size_t>(i * found.cols + j)];
        most = std::max(most, std::abs(wanted));
        difference = std::max(difference, std::abs(wanted - found(i, j)));
      }
    }
    EXPECT_LT(difference, 1e-5 * most) << what;
  }
};

}  // namespace mh::test
