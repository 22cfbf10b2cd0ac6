// What the rows of a matrix of attention weights are like: one pass in vectors over weights that are in the cache.
#pragma once

#include <cstdint>

#include "multihead/base/matrix_view.h"

namespace mh {

/// Of the weights a of query i over the keys j that it may see.
struct AttentionRow {
  float entropy = 0;   // -sum a log a, nats
  float distance = 0;  // sum a |i - j|
  float squares = 0;   // sum a^2
  int32_t most = 0;    // the key with the largest weight; of equal ones the first
};

enum class KeysSeen { kAll, kEarlier };  // kEarlier: query i sees keys 0 to i

/// Writes rows[i] for each row of weights. On the calling thread.
void describe_rows(ConstMatrixView weights, KeysSeen seen, AttentionRow* rows);

/// The entropy of (a_i + b_i) / 2, summed over rows, nats; rows as above.
double mixed_entropy(ConstMatrixView a, ConstMatrixView b, KeysSeen seen);

}  // namespace mh
