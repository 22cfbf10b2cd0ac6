// Where an attention stands in a model: its kind, its layer and its stack.
#pragma once

#include <string>
#include <string_view>

namespace mh {

enum class AttentionKind { kEncoderSelf, kDecoderSelf, kCross };

struct AttentionPlace {
  AttentionKind kind = AttentionKind::kEncoderSelf;
  int layer = 0;

  /// "encoder" or "decoder".
  std::string_view stack() const { return kind == AttentionKind::kEncoderSelf ? "encoder" : "decoder"; }
  /// "decoder.3.cross_attention", the name of the attention.
  std::string name() const;
  bool operator==(const AttentionPlace&) const = default;
};

/// "encoder self-attention", "decoder self-attention", "cross-attention".
std::string_view name_of(AttentionKind kind);

}  // namespace mh
