// JsonNode: a JSON value with its path in the file, for error messages. It shows nlohmann's type, so only
// the inner files of this folder include it.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/text/in_quotes.h"
#include "multihead/text/unicode.h"

namespace mh {

/// Runs `call`, and puts the file's name before the message of a FormatError from it.
template <class Call>
decltype(auto) naming(std::string_view file, Call&& call) {
  try {
    return call();
  } catch (const FormatError& error) {
    throw FormatError(fmt::format("{}: {}", file, error.what()));
  }
}

/// Reads members and items. Throws FormatError naming the path when one is missing or of the wrong type.
class JsonNode {
 public:
  using Json = nlohmann::json;
  /// `file` is what errors call it. REQUIRES: both outlive this.
  JsonNode(const Json& value, std::string path, std::string_view file)
      : value_(&value), path_(std::move(path)), file_(file) {}

  [[noreturn]] void fail(std::string_view what) const {
    throw FormatError(fmt::format("{}: {}{}{}", file_, path_, path_.empty() ? "" : ": ", what));
  }
  const Json& value() const { return *value_; }
  const std::string& path() const { return path_; }

  /// Returns the member; nothing when it is missing or null.
  std::optional<JsonNode> find(const char* key) const {
    if (!value_->is_object()) fail("expected an object");
    const auto found = value_->find(key);
    if (found == value_->end() || found->is_null()) return std::nullopt;
    return JsonNode(*found, path_.empty() ? key : path_ + "." + key, file_);
  }
  JsonNode at(const char* key) const {
    if (auto node = find(key)) return *node;
    fail(fmt::format("expected a member \"{}\"", key));
  }
  size_t size() const {
    if (!value_->is_array()) fail("expected an array");
    return value_->size();
  }
  JsonNode item(size_t i) const { return JsonNode((*value_)[i], fmt::format("{}[{}]", path_, i), file_); }
  std::vector<JsonNode> items() const {
    std::vector<JsonNode> nodes;
    for (size_t i = 0; i < size(); ++i) nodes.push_back(item(i));
    return nodes;
  }

  const std::string& text() const {
    if (!value_->is_string()) fail("expected a string");
    return value_->get_ref<const std::string&>();
  }
  std::string text(const char* key, const char* otherwise) const {
    const auto node = find(key);
    return node ? node->text() : otherwise;
  }
  bool flag(const char* key, bool otherwise) const {
    const auto node = find(key);
    if (!node) return otherwise;
    if (!node->value_->is_boolean()) node->fail("expected true or false");
    return node->value_->get<bool>();
  }
  int32_t number() const {
    constexpr int32_t kMost = INT32_MAX;
    const bool fits = value_->is_number_unsigned()
                          ? value_->get<uint64_t>() <= kMost
                          : value_->is_number_integer() && value_->get<int64_t>() >= 0;
    if (!fits) fail(fmt::format("expected a whole number from 0 to {}", kMost));
    return value_->get<int32_t>();
  }
  std::string one_character() const {
    const std::string& c = text();
    if (c.empty() || utf8_length(c[0]) != c.size())
      fail(fmt::format("expected one character, got {}", in_quotes(c)));
    return c;
  }
  /// Returns the enum value whose name this is; the names are in the order of the enum.
  template <class Enum, size_t N>
  Enum choice(const std::array<const char*, N>& names) const {
    for (size_t i = 0; i < N; ++i) {
      if (text() == names[i]) return static_cast<Enum>(i);
    }
    fail(fmt::format("expected one of {}, got {}", fmt::join(names, ", "), in_quotes(text())));
  }

 private:
  const Json* value_;
  std::string path_;
  std::string_view file_;
};

}  // namespace mh
