// Reads the kind and layer of an attention from its name.
#pragma once

#include <string_view>

namespace mh {

enum class AttentionKind { kEncoderSelf, kDecoderSelf, kCross };

struct AttentionPlace {
  AttentionKind kind = AttentionKind::kEncoderSelf;
  int layer = 0;
};

/// "decoder.0.cross_attention" -> {kCross, 0}. Throws UsageError on a name of another form.
AttentionPlace attention_place(std::string_view attention);

/// "encoder self-attention", "decoder self-attention", "cross-attention".
std::string_view name_of(AttentionKind kind);

}  // namespace mh
