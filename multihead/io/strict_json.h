// Parses JSON from files that are not trusted. Only .cpp files and inner headers include it, because it
// shows nlohmann's type; public headers offer config.h instead.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace mh {

/// How deeply objects and lists may be nested.
constexpr int kDeepestJson = 64;

/// Parses all of `text`. Throws FormatError (one line, `name` first) on what is not JSON, an object with
/// the same key twice, nesting deeper than `deepest`, text that is not UTF-8, a NUL byte, a number beyond
/// double. When you read numbers: integers beyond 64 bits arrive as floating point, negative ones are not
/// is_number_unsigned().
nlohmann::json parse_json_strictly(std::string_view text, std::string_view name, int deepest = kDeepestJson);

/// Returns `value` as JSON, cut to about 40 characters, for messages.
std::string json_excerpt(const nlohmann::json& value);

}  // namespace mh
