// Which heads read alike, as a picture in SVG.
#pragma once

#include <string>

#include "multihead/heads/measures/heads_similar.h"

namespace mh {

/// For each kind of attention a matrix of all heads in the order of its dendrogram, which stands beside it: divergence below
/// the diagonal, null divergence above it, clusters framed. Heads are named LAYER.HEAD.
std::string draw_similar(const SimilarReport& similar);

}  // namespace mh
