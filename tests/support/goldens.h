// The files that tests/oracles makes with other libraries.
#pragma once

#include <filesystem>

#include "tests/support/places.h"

namespace mh {

inline const std::filesystem::path kGoldens = goldens_folder();

}  // namespace mh
