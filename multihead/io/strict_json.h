// Parses JSON from files that are not trusted. Only .cpp files and inner headers include it, because it
// shows nlohmann's type; public headers offer config.h instead.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace mh {

/// How deeply objects and lists may be nested.
constexpr int kDeepestJson = 64;

/// How much memory the values may take besides their text. The value "0," takes up to 64 bytes, and a member
/// "a":0 some 100.
enum class JsonMemory {
  kBounded,  ///< 40 MiB, none of the parser's copies above 8 MiB: enough for headers and 300,000 words
  kAny,      ///< for a tokenizer.json, which is as large as it is
};

/// Parses all of `text`. Throws FormatError (one line, `name` first) on what is not JSON, an object with
/// the same key twice, nesting deeper than `deepest`, text that is not UTF-8, a NUL byte, a number beyond
/// double, values that take more memory than they may. When you read numbers: integers beyond 64 bits arrive as
/// floating point, negative ones are not is_number_unsigned().
nlohmann::json parse_json_strictly(std::string_view text, std::string_view name, int deepest = kDeepestJson,
                                   JsonMemory memory = JsonMemory::kBounded);

/// Returns `value` as JSON, cut to about 40 characters, for messages.
std::string json_excerpt(const nlohmann::json& value);

}  // namespace mh
