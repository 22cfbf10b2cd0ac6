#include "multihead/heads/sites/attention_name.h"

#include <fmt/format.h>

#include <cstddef>

#include "multihead/base/error.h"
#include "multihead/nn/head_name.h"

namespace mh {

AttentionPlace attention_place(std::string_view attention) {
  const size_t first = attention.find('.'), second = attention.find('.', first + 1);
  if (first != std::string_view::npos && second != std::string_view::npos) {
    const std::string_view stack = attention.substr(0, first), what = attention.substr(second + 1);
    if (const auto layer = whole_number_in(attention.substr(first + 1, second - first - 1))) {
      if (stack == "encoder" && what == "self_attention") return {AttentionKind::kEncoderSelf, *layer};
      if (stack == "decoder" && what == "self_attention") return {AttentionKind::kDecoderSelf, *layer};
      if (stack == "decoder" && what == "cross_attention") return {AttentionKind::kCross, *layer};
    }
  }
  throw UsageError(
      fmt::format("attention '{}': expected a name such as encoder.3.self_attention or "
                  "decoder.0.cross_attention",
                  attention));
}

std::string_view name_of(AttentionKind kind) {
  constexpr std::string_view kNames[] = {"encoder self-attention", "decoder self-attention",
                                         "cross-attention"};
  return kNames[static_cast<size_t>(kind)];
}

}  // namespace mh
