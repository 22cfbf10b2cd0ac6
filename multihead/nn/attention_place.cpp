#include "multihead/nn/attention_place.h"

#include <fmt/format.h>

#include <cstddef>

namespace mh {

std::string_view name_of(AttentionKind kind) {
  constexpr std::string_view kNames[] = {"encoder self-attention", "decoder self-attention",
                                         "cross-attention"};
  return kNames[static_cast<size_t>(kind)];
}

std::string AttentionPlace::name() const {
  return fmt::format("{}.{}.{}", stack(), layer,
                     kind == AttentionKind::kCross ? "cross_attention" : "self_attention");
}

}  // namespace mh
