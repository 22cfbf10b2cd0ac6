// A circuit as a graph, a picture in SVG.
#pragma once

#include <string>

#include "multihead/heads/circuit/heads_circuit.h"

namespace mh {

/// Heads and feed-forward layers in the order of a pass, the embeddings at the foot, the last states at the top; edges to queries blue, to
/// keys red, to values green, to others grey, as wide as their scores, against the answer dashed. Throws UsageError on a circuit of more than
/// kMostDrawnEdges edges.
std::string draw_circuit(const CircuitReport& circuit);
inline constexpr size_t kMostDrawnEdges = 2000;

}  // namespace mh
