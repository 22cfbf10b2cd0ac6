// Makes the bytes of GGUF files, right and wrong ones.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mh::test {

template <class T>
std::string little_endian(T number) {
  return {reinterpret_cast<const char*>(&number), sizeof number};
}

inline std::string gguf_text(std::string_view text) {
  return little_endian(static_cast<uint64_t>(text.size())) + std::string(text);
}

// Values of the metadata: the type's number and the bytes.
inline std::string gguf_u32(uint32_t number) {
  return little_endian(uint32_t{4}) + little_endian(number);
}
inline std::string gguf_f32(float number) {
  return little_endian(uint32_t{6}) + little_endian(number);
}
inline std::string gguf_bool(uint8_t byte) {
  return little_endian(uint32_t{7}) + little_endian(byte);
}
inline std::string gguf_string(std::string_view text) {
  return little_endian(uint32_t{8}) + gguf_text(text);
}
/// items: their bytes, one after another. claimed: how many the file says there are.
inline std::string gguf_list(uint32_t type, uint64_t claimed, const std::string& items) {
  return little_endian(uint32_t{9}) + little_endian(type) + little_endian(claimed) + items;
}
inline std::string gguf_strings(const std::vector<std::string>& texts) {
  std::string items;
  for (const std::string& text : texts) items += gguf_text(text);
  return gguf_list(8, texts.size(), items);
}
inline std::string gguf_ints(const std::vector<int32_t>& numbers) {
  std::string items;
  for (const int32_t number : numbers) items += little_endian(number);
  return gguf_list(5, numbers.size(), items);
}
inline std::string gguf_floats(const std::vector<float>& numbers) {
  std::string items;
  for (const float number : numbers) items += little_endian(number);
  return gguf_list(6, numbers.size(), items);
}

struct GgufTensorSpec {
  std::string name;
  std::vector<uint64_t> sizes;  // as in the file
  uint32_t type = 0;
  std::string data;
  std::optional<uint64_t> offset = std::nullopt;  // unset: where it belongs
};

struct GgufSpec {
  std::string magic = "GGUF";
  uint32_t version = 3;
  std::vector<std::pair<std::string, std::string>> values;
  std::vector<GgufTensorSpec> tensors;
  uint64_t alignment = 32;
  std::optional<uint64_t> tensor_count = std::nullopt, value_count = std::nullopt;  // unset: the true ones

  std::string& value(std::string_view key) {
    for (auto& [name, bytes] : values) {
      if (name == key) return bytes;
    }
    return values.emplace_back(std::string(key), std::string()).second;
  }
  void erase(std::string_view key) {
    std::erase_if(values, [&](const auto& value) { return value.first == key; });
  }
  GgufTensorSpec& tensor(std::string_view name) {
    for (GgufTensorSpec& tensor : tensors) {
      if (tensor.name == name) return tensor;
    }
    return tensors.emplace_back(GgufTensorSpec{.name = std::string(name), .sizes = {}, .data = {}});
  }

  std::string bytes() const {
    std::string file = magic + little_endian(version) +
                       little_endian(tensor_count.value_or(uint64_t{tensors.size()})) +
                       little_endian(value_count.value_or(uint64_t{values.size()}));
    for (const auto& [key, value] : values) file += gguf_text(key) + value;
    const auto pad = [&](std::string& text) {
      while (text.size() % alignment != 0) text += '\0';
    };
    std::string data;
    for (const GgufTensorSpec& tensor : tensors) {
      pad(data);
      file += gguf_text(tensor.name) + little_endian(static_cast<uint32_t>(tensor.sizes.size()));
      for (const uint64_t size : tensor.sizes) file += little_endian(size);
      file += little_endian(tensor.type) + little_endian(tensor.offset.value_or(uint64_t{data.size()}));
      data += tensor.data;
    }
    pad(file);
    return file + data;
  }
};

/// Zeros of a tensor of F32.
inline GgufTensorSpec gguf_zeros(std::string name, std::vector<uint64_t> sizes) {
  uint64_t elements = 1;
  for (const uint64_t size : sizes) elements *= size;
  return {.name = std::move(name), .sizes = std::move(sizes), .data = std::string(4 * elements, '\0')};
}

}  // namespace mh::test
