// What an attention's name says about it.
#pragma once

#include <string>
#include <string_view>

namespace mh {

enum class AttentionKind { kEncoderSelf, kDecoderSelf, kCross };

struct AttentionPlace {
  AttentionKind kind = AttentionKind::kEncoderSelf;
  int layer = 0;
};

/// "decoder.0.cross_attention" -> {kCross, 0}. Throws UsageError on a name of another form.
AttentionPlace attention_place(std::string_view attention);

/// "encoder.3.self_attention.1" as attention and head. Throws UsageError on a name of another form.
struct HeadName {
  std::string attention;
  int head = 0;
};
HeadName parse_head_name(std::string_view name);

}  // namespace mh
