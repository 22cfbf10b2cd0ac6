#include "multihead/nn/attention_place.h"

#include <cstddef>

namespace mh {

std::string_view name_of(AttentionKind kind) {
  constexpr std::string_view kNames[] = {"encoder self-attention", "decoder self-attention",
                                         "cross-attention"};
  return kNames[static_cast<size_t>(kind)];
}

}  // namespace mh
