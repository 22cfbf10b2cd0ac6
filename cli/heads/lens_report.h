// The tables of `multihead heads lens`, for 80 columns.
#pragma once

#include <string>

#include "multihead/heads/lens/heads_lens.h"

namespace mh::cli {

/// One position: a line for each place. Several: the first words, places down and positions across. Of vectors: cosines.
std::string lens_table(const LensReport& lens);

}  // namespace mh::cli
