// What Hugging Face tokenizers answered about texts (tests/oracles/torture_goldens.py), and ours beside it.
#pragma once

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "multihead/text/tokenizer.h"

namespace mh {

/// FNV-1a, 64 bits, over 32-bit words.
template <class List>
std::string hash_of(const List& values) {
  uint64_t digest = 0xCBF29CE484222325;
  for (const auto value : values) digest = (digest ^ static_cast<uint32_t>(value)) * 0x100000001B3;
  return fmt::format("{:016x}", digest);
}
inline std::string hash_of_bytes(std::string_view text) {
  return hash_of(std::vector<unsigned char>(text.begin(), text.end()));
}

/// Compares the tokenizer's answers with `expected`: long ones by their hashes, short ones in full as well.
inline void expect_answer(const Tokenizer& tokenizer, const std::string& text,
                          const nlohmann::json& expected) {
  SCOPED_TRACE(
      nlohmann::json(text.substr(0, 200)).dump(-1, ' ', true, nlohmann::json::error_handler_t::ignore));
  const Encoding encoding = tokenizer.encode(text);
  std::vector<int32_t> offsets;
  for (const auto& [begin, end] : encoding.offsets) offsets.insert(offsets.end(), {begin, end});
  std::string tokens;
  for (const std::string& token : encoding.tokens) tokens += token;
  const std::string decoded = tokenizer.decode(encoding.ids);
  const auto plain = tokenizer.encode_ids(text, false);
  if (expected.contains("ids")) {
    EXPECT_EQ(encoding.ids, expected["ids"].get<std::vector<int32_t>>());
    EXPECT_EQ(decoded, expected["decoded"].get<std::string>());
  } else {
    EXPECT_EQ(encoding.ids.size(), expected["count"].get<size_t>());
  }
  if (expected.contains("offsets")) {
    EXPECT_EQ(offsets, expected["offsets"].get<std::vector<int32_t>>());
  }
  const auto hashes = expected["hashes"].get<std::vector<std::string>>();
  ASSERT_EQ(hashes.size(), 6u);
  EXPECT_EQ(hash_of(encoding.ids), hashes[0]) << "ids";
  EXPECT_EQ(hash_of_bytes(tokens), hashes[1]) << "tokens";
  EXPECT_EQ(hash_of(offsets), hashes[2]) << "offsets";
  EXPECT_EQ(hash_of(plain), hashes[3]) << "ids without special tokens";
  EXPECT_EQ(hash_of_bytes(decoded), hashes[4]) << "decoded";
  EXPECT_EQ(hash_of_bytes(tokenizer.decode(encoding.ids, false)), hashes[5]) << "decoded with special tokens";
  EXPECT_EQ(tokenizer.encode_ids(text), encoding.ids);
  EXPECT_EQ(tokenizer.encode(text, false).ids, plain);
}

/// The lines of a text, divided at line feeds only.
inline std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines(1);
  for (const char c : text) {
    if (c == '\n') {
      lines.emplace_back();
    } else {
      lines.back() += c;
    }
  }
  return lines;
}

}  // namespace mh
