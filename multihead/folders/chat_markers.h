// The tokens of ChatML around each message of a chat: "<|im_start|>user\nHow high is the sky?<|im_end|>\n".
#pragma once

#include <array>
#include <string_view>

namespace mh {

inline constexpr const char* kChatStart = "<|im_start|>";
/// The token that ends a message, so an answer, too.
inline constexpr const char* kChatEnd = "<|im_end|>";
inline constexpr std::array<std::string_view, 2> kChatMarkers = {kChatStart, kChatEnd};

}  // namespace mh
