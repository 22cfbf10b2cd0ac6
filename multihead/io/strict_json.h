// JSON from files nobody vouches for. For the .cpp files of the rooms only: it is the one header that shows
// nlohmann's type, so no public header may include it (they offer config.h instead).
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace mh {

/// How many objects and lists may stand inside one another.
constexpr int kDeepestJson = 64;

/// Parses `text`, all of it. Throws FormatError (one line, `name` first) on what is not JSON, an object with
/// the same key twice, nesting deeper than `deepest`, text that is not UTF-8, a NUL byte, a number beyond
/// double. Mind when reading numbers: integers beyond 64 bits arrive as floating point, negative ones are not
/// is_number_unsigned().
nlohmann::json parse_json_strictly(std::string_view text, std::string_view name, int deepest = kDeepestJson);

/// `value` as it would stand in a file, cut to about 40 characters: for messages.
std::string json_excerpt(const nlohmann::json& value);

}  // namespace mh
