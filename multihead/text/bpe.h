// Applies byte-pair encoding (Sennrich et al. 2016): merges the symbols of a word pair by pair.
// (learn_merges.h learns which pairs.)
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace mh {

/// A piece of a word: a token, and the number of bytes of the word that it covers.
struct Symbol {
  int32_t id;
  uint32_t length;
  bool shared = false;  ///< the next piece covers the same bytes
};

/// The tokens of a merge.
struct MergeIds {
  int32_t left, right, merged;
};

/// Looks up the tokens of model.merges[rank]: the pair, and `left` followed by `right` without the prefix. `find` gives
/// a token's id or nothing. Throws FormatError when a token is unknown or `right` lacks the prefix.
MergeIds merge_ids(std::string_view left, std::string_view right, std::string_view prefix, size_t rank,
                   const std::function<std::optional<int32_t>(std::string_view)>& find);

/// Which pairs of tokens are merged, in which order, and into which token.
class MergeTable {
 public:
  struct Merge {
    int32_t rank;
    int32_t merged;
  };
  /// Adds a merge. A pair that is added twice keeps the later rank, as in Hugging Face.
  void add(int32_t left, int32_t right, Merge merge) { merges_[key(left, right)] = merge; }
  /// Returns null when the pair is not merged.
  const Merge* find(int32_t left, int32_t right) const {
    const auto found = merges_.find(key(left, right));
    return found == merges_.end() ? nullptr : &found->second;
  }
  /// Merges the pair of lowest rank (of equals the leftmost) again and again, until no pair is left.
  /// O(n log n).
  void merge_all(std::vector<Symbol>& symbols) const;

 private:
  static uint64_t key(int32_t left, int32_t right) {
    return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
  }
  std::unordered_map<uint64_t, Merge> merges_;
};

}  // namespace mh
