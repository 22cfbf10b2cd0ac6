// A module for pages multiplies no integers (models/use_precision_web.cpp refuses what would).
#include "multihead/base/error.h"
#include "multihead/kernels/block_bytes.h"

namespace mh {

void multiply_block_bytes(const ByteRows&, BlockType, const std::byte*, ProductKernel, MatrixView, bool) {
  MH_ASSERT(false);
}

}  // namespace mh
