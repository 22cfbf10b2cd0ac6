// Base64 (RFC 4648, with padding), in which JSON carries bytes.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace mh {

std::string to_base64(std::string_view bytes);
/// Returns nothing when `text` is not base64: another character, a length that is no multiple of 4, bits that
/// no byte uses.
std::optional<std::string> from_base64(std::string_view text);

}  // namespace mh
