// Is it UTF-8? Every text that comes from outside is asked once, at the door.
#pragma once

#include <cstddef>
#include <string_view>

namespace mh {

/// Where the first byte stands that begins no well-formed UTF-8 sequence (Unicode 15, table 3-7: no overlong
/// forms, no surrogates, nothing above U+10FFFF); std::string_view::npos when all of `bytes` is UTF-8.
size_t first_invalid_utf8(std::string_view bytes);

}  // namespace mh
