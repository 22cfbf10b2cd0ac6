// Scales each head's part of a row by its length: query-key normalisation (Henry et al. 2020), and RMS norms of queries and
// keys (Qwen3).
#pragma once

#include "multihead/autograd/parameter.h"
#include "multihead/autograd/tape.h"

namespace mh {

struct HeadNorm {
  enum class Kind {
    kLength,  // x / |x|, and 0 where x is 0
    kRms,     // x / sqrt(|x|^2 / D + epsilon)
  };
  Kind kind = Kind::kLength;
  const Parameter* gain = nullptr;  // [1, 1] or [1, D], by which numbers are multiplied; null: 1
  float epsilon = 0;                // of kRms
};

/// y_i = gain * x_i / length(x_i) for every head i of every row. x [N, heads * D].
Var normalise_heads(Tape& tape, Var x, int heads, const HeadNorm& norm = {});

}  // namespace mh
