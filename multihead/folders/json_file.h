// JsonFile: a small JSON file of a model folder, read at once. It shows the type of strict_json.h, so only
// sources of this folder include it.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

#include "multihead/base/file.h"
#include "multihead/io/strict_json.h"
#include "multihead/text/json_node.h"

namespace mh {

class JsonFile {
 public:
  /// Throws FileError or FormatError.
  explicit JsonFile(const std::filesystem::path& path)
      : name_(path.string()), document_(parse_json_strictly(read_regular_file(path), name_)) {}
  /// Of its bytes; `name` is what errors call them.
  JsonFile(std::string_view bytes, std::string name)
      : name_(std::move(name)), document_(parse_json_strictly(bytes, name_)) {}
  JsonFile(const JsonFile&) = delete;
  JsonFile& operator=(const JsonFile&) = delete;
  /// What errors call it.
  const std::string& name() const { return name_; }
  /// Valid as long as this.
  JsonNode root() const { return {document_, "", name_}; }

 private:
  std::string name_;
  nlohmann::json document_;
};

}  // namespace mh
