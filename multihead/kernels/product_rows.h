// The left factor A [M, K] of a product as the panels of B read it: where it lies, or rounded to fewer bits (docs/precision.md),
// which is done once for each row, whatever the number of panels.
#pragma once

#include <cstddef>
#include <cstdint>

#include "multihead/base/aligned.h"
#include "multihead/base/matrix_view.h"
#include "multihead/kernels/byte_rows.h"
#include "multihead/kernels/channel_rows.h"
#include "multihead/kernels/half_panels.h"
#include "multihead/kernels/packed_matrix.h"

namespace mh {

struct ProductRows {
  ConstMatrixView numbers;  // A
  // The same rounded, as B's kind of panels wants it.
  ByteRows bytes = {};        // kBlocks
  HalfRows halves = {};       // kHalves
  ChannelRows channels = {};  // kChannels

  ProductRows rows_between(int64_t begin, int64_t end) const;
};

/// Whose task rounds rows: each thread some, or the one that calls, as inside of a task.
enum class RoundedBy { kAllThreads, kCaller };

/// A as B's panels read it. What is rounded lies in `memory`, which is to live as long as the result.
ProductRows product_rows(ConstMatrixView a, const PackedMatrix& b, AlignedBuffer<std::byte>& memory,
                         RoundedBy by);

/// C (+)= A b for numbers [k0, k0 + depth) of panel p of B, C [M, the panel's width]. REQUIRES: B's panels are not float32; a
/// panel whose rows are rounded is multiplied whole.
void multiply_small_panel(const ProductRows& a, const PackedMatrix& b, int64_t p, int64_t k0, int64_t depth,
                          MatrixView c, bool add);

}  // namespace mh
