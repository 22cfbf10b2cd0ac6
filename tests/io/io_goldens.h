// What the tests of io's files share with tests/oracles/io_goldens.py.
#pragma once

#include <filesystem>
#include <vector>

#include "tests/support/goldens.h"
#include "tests/support/places.h"

namespace mh {

inline const std::filesystem::path kIoGoldens = kGoldens / "io";
/// Files for io_goldens.py --check.
inline const std::filesystem::path kWritten = std::filesystem::path(build_folder()) / "io_written";

/// The same as numbers() there.
inline std::vector<float> numbers(int count) {
  std::vector<float> values;
  for (int i = 0; i < count; ++i) values.push_back(static_cast<float>(i * 37 % 101 - 50) / 8);
  return values;
}

}  // namespace mh
