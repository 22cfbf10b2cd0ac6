// TokenIds: the ids of a vocabulary's tokens without their texts, and what must hold of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mh {

/// A text is known by a hash of 64 bits: two of a million tokens share one with a probability of 3e-8, and the
/// vocabulary would be refused. 25 bytes a token at most, 38 while it grows.
class TokenIds {
 public:
  static constexpr size_t kMostTokens = 1 << 20;

  /// A token of the model. Throws FormatError when the model has it already, when the id is another token's, when the
  /// token has another id, and beyond kMostTokens.
  void add(std::string_view token, int32_t id);
  /// An added token, which the model may have, too. Throws as `add` does, and when it is empty.
  void add_added(std::string_view token, int32_t id);
  /// Throws FormatError unless the ids are 0 … size() - 1.
  void check() const;

  /// Returns the id of a token of the model.
  std::optional<int32_t> find(std::string_view token) const;
  size_t size() const { return size_; }

 private:
  struct Place {
    size_t slot;
    bool found;
  };
  Place place_of(uint64_t hash) const;
  void insert(std::string_view token, uint64_t hash, int32_t id, bool of_model);

  // An open hash table. A slot holds the id, or ~id where only added_tokens has the token; hash 0: it is free.
  std::vector<uint64_t> hashes_;
  std::vector<int32_t> ids_;
  std::vector<bool> taken_;  // ids
  size_t size_ = 0;
  int32_t largest_ = -1;
  std::string largest_token_;  // its start
};

}  // namespace mh
