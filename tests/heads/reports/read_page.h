// Reads the data of a page again, as the page itself does.
#pragma once

#include <zlib.h>

#include <cstring>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "multihead/base/stored_matrix.h"
#include "multihead/text/base64.h"

namespace mh {

struct ReadPage {
  nlohmann::json header;
  std::string numbers;

  template <class T>
  std::vector<T> block(const nlohmann::json& of) const {
    std::vector<T> found(of["bytes"].get<size_t>() / sizeof(T));
    std::memcpy(found.data(), numbers.data() + of["offset"].get<size_t>(), found.size() * sizeof(T));
    return found;
  }
  std::vector<float> halves(const nlohmann::json& of) const {
    std::vector<float> found;
    for (const uint16_t half : block<uint16_t>(of)) found.push_back(from_float16(half));
    return found;
  }
};

/// The bytes that were deflated, at most `most` of them.
inline std::string inflated(const std::string& deflated, size_t most) {
  std::string bytes(most, '\0');
  uLongf size = bytes.size();
  if (uncompress(reinterpret_cast<Bytef*>(bytes.data()), &size,
                 reinterpret_cast<const Bytef*>(deflated.data()), deflated.size()) != Z_OK)
    throw std::runtime_error("the data cannot be inflated");
  bytes.resize(size);
  return bytes;
}

inline ReadPage read_page(const std::string& html) {
  const std::string begin = "<script id=\"data\" type=\"text/plain\">";
  const size_t from = html.find(begin) + begin.size();
  const auto deflated = from_base64(html.substr(from, html.find('<', from) - from));
  if (!deflated) throw std::runtime_error("the data is not base64");
  const std::string bytes = inflated(*deflated, size_t{1} << 26);
  uint32_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof(length));
  return {nlohmann::json::parse(bytes.substr(sizeof(length), length)),
          bytes.substr((sizeof(length) + length + 7) / 8 * 8)};
}

}  // namespace mh
