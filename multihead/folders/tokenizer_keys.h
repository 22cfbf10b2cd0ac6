// Which keys of tokenizer_config.json and special_tokens_map.json are obeyed, and which change no tokens.
#pragma once

#include <string>
#include <string_view>

namespace mh {

/// "FILE: x_y is not known here and was not used", of all keys of a tokenizer_config.json for which that holds; else empty. Throws
/// FormatError on what is no object.
std::string tokenizer_config_remark(std::string_view json, std::string_view file);
/// The same of a special_tokens_map.json.
std::string special_tokens_remark(std::string_view json, std::string_view file);

}  // namespace mh
