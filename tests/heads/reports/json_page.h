// The fields of JSON, on its page and as it is.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "multihead/base/file.h"
#include "tests/support/places.h"

namespace mh {

/// Names between backticks in a section of docs/file-formats.md.
inline std::set<std::string> names_on_the_page(const std::string& section) {
  const std::string page = read_file(std::filesystem::path(source_folder()) / "docs" / "file-formats.md");
  const size_t begin = page.find("\n## " + section + "\n"), end = page.find("\n## ", begin + 1);
  std::set<std::string> names;
  for (size_t at = page.find('`', begin); at < end; at = page.find('`', at + 1)) {
    const size_t close = page.find('`', at + 1);
    names.insert(page.substr(at + 1, close - at - 1));
    at = close;
  }
  return names;
}

/// Every key but names of heads.
inline void collect_keys(const nlohmann::json& node, std::set<std::string>& keys) {
  if (!node.is_structured()) return;
  for (const auto& [key, value] : node.items()) {
    if (node.is_object() && key.find('.') == std::string::npos) keys.insert(key);
    collect_keys(value, keys);
  }
}

}  // namespace mh
