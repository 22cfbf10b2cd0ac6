// A module for pages multiplies no integers (models/use_precision_web.cpp refuses what would).
#include "multihead/base/error.h"
#include "multihead/kernels/channel_panels.h"

namespace mh {

int64_t channel_panel_bytes(int64_t, int64_t) {
  MH_ASSERT(false);
  return 0;
}

void pack_channel_panel(const StoredMatrix&, int64_t, int64_t, int64_t, std::byte*) {
  MH_ASSERT(false);
}

void multiply_channel_panel(const ChannelRows&, const std::byte*, ProductKernel, MatrixView, bool) {
  MH_ASSERT(false);
}

}  // namespace mh
