#include "multihead/io/gguf_unpack.h"

#include "multihead/base/block_parts.h"

namespace mh {

void unpack_block(BlockType type, const std::byte* at, float* out) {
  const BlockLayout layout = block_layout(type);
  const BlockParts parts(type, at);
  const float d = parts.scale(), m = parts.least();
  for (int64_t part = 0, i = 0; part < layout.parts(); ++part) {
    const float scale = d * parts.s[part];
    const float least = layout.has_least ? m * parts.t[part] : scale * static_cast<float>(-layout.offset);
    const int64_t end = i + layout.part;
    if (layout.values != nullptr) {
      for (; i < end; ++i) out[i] = layout.values[parts.q[i]] * scale;
    } else {
      for (; i < end; ++i) out[i] = parts.q[i] * scale + least;
    }
  }
}

}  // namespace mh
