// What the stream says after each layer, as a picture in SVG.
#pragma once

#include <string>

#include "multihead/heads/lens/heads_lens.h"

namespace mh {

/// Places down, positions across: the first word of each, the darker the more probable. Throws UsageError on a report of
/// vectors, which has no words.
std::string draw_lens(const LensReport& lens);

}  // namespace mh
