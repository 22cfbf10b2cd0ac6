// The files that tests/oracles makes with other libraries.
#pragma once

#include <filesystem>

namespace mh {

inline const std::filesystem::path kGoldens = MULTIHEAD_TEST_DATA;

}  // namespace mh
