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

/// Lists of ids that stand one behind the other.
inline std::vector<std::vector<int32_t>> golden_lists(const SafetensorsFile& file, const std::string& ids,
                                                      const std::string& lengths) {
  const auto all = file.integers(ids);
  std::vector<std::vector<int32_t>> lists;
  auto at = all.begin();
  for (const int64_t length : file.integers(lengths)) {
    lists.emplace_back(at, at + length);
    at += length;
  }
  return lists;
}

/// The largest difference, as a share of the largest value, is below 1e-5.
inline void expect_near_golden(ConstMatrixView found, const std::vector<float>& expected, const char* what) {
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

struct GoldenModel {
  GoldenModel(const std::string& family, const std::string& name)
      : folder(std::filesystem::path(goldens_folder()) / family / name),
        file(SafetensorsFile::open(folder.parent_path() / (name + ".golden.safetensors"))),
        sequences(golden_lists(file, "ids", "lengths")) {}

  std::filesystem::path folder;
  SafetensorsFile file;
  std::vector<std::vector<int32_t>> sequences;

  void expect_near(ConstMatrixView found, const char* what) const {
    expect_near_golden(found, file.floats(what), what);
  }
};

}  // namespace mh::test
