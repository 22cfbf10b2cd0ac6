// Parses JSON from files that are not trusted. Only .cpp files and inner headers include it, because it
// shows nlohmann's type; public headers offer config.h instead.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace mh {

/// How deeply objects and lists may be nested.
constexpr int kDeepestJson = 64;

/// What a text may ask for. The value "0," takes up to 64 bytes, and a member "a":0 some 100.
struct JsonLimits {
  int deepest = kDeepestJson;
  size_t memory = size_t{40} << 20;  ///< bytes of the values; enough for 300,000 words
  size_t token = size_t{8} << 20;    ///< bytes of one text, or of what stands between two texts or numbers
};

struct JsonItem {
  size_t list;             ///< whose path is JsonLists::paths[list]
  const std::string* key;  ///< null: the list is an array
  const nlohmann::json& value;
};

/// Lists (arrays or objects) too long to be kept: each item is handed over when it is complete, and let go. In the
/// document the list is empty.
struct JsonLists {
  std::vector<std::string> paths;             ///< of members of the root, or of a member's: "model.vocab"
  std::function<void(const JsonItem&)> take;  ///< may throw
};

/// Parses all of `text`. Throws FormatError (one line, `name` first) on what is not JSON, an object with
/// the same key twice (in a list that is handed over: not seen), nesting deeper than allowed, text that is not
/// UTF-8, a NUL byte, a number beyond double, and what goes beyond `limits`. When you read numbers: integers
/// beyond 64 bits arrive as floating point, negative ones are not is_number_unsigned().
nlohmann::json parse_json_strictly(std::string_view text, std::string_view name, JsonLimits limits = {},
                                   const JsonLists& lists = {});

/// Returns `value` as JSON, cut to about 40 characters, for messages.
std::string json_excerpt(const nlohmann::json& value);

}  // namespace mh
