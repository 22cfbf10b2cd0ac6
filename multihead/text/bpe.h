// Applies byte-pair encoding (Sennrich et al. 2016): merges the symbols of a word pair by pair.
// (learn_merges.h learns which pairs.)
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
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

/// Which pairs of tokens are merged, in which order, and into which token: a hash table in one array, since real vocabularies have
/// half a million merges.
class MergeTable {
 public:
  struct Merge {
    int32_t rank;  // from 0 on
    int32_t merged;
  };
  /// Adds a merge. A pair that is added twice keeps the later rank, as in Hugging Face.
  void add(int32_t left, int32_t right, Merge merge);
  /// Returns null when the pair is not merged.
  const Merge* find(int32_t left, int32_t right) const {
    if (slots_.empty()) return nullptr;
    const Slot& slot = slots_[place(key(left, right))];
    return slot.is_free() ? nullptr : &slot.merge;
  }
  /// Merges the pair of lowest rank (of equals the leftmost) again and again, until no pair is left.
  /// O(n log n).
  void merge_all(std::vector<Symbol>& symbols) const;

 private:
  struct Slot {
    uint64_t key = 0;
    Merge merge = {.rank = -1, .merged = -1};
    bool is_free() const { return merge.rank < 0; }
  };
  static uint64_t key(int32_t left, int32_t right) {
    return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
  }
  /// The slot with this key, or the free one where it goes. REQUIRES: there are slots, a quarter of them free.
  size_t place(uint64_t key) const {
    constexpr uint64_t kGoldenRatio =
        0x9E3779B97F4A7C15;  // spreads keys over the high bits (Knuth 1973, 6.4)
    const size_t last = slots_.size() - 1;
    size_t at = static_cast<size_t>((key ^ key >> 29) * kGoldenRatio >> 32) & last;
    while (!slots_[at].is_free() && slots_[at].key != key) at = (at + 1) & last;
    return at;
  }

  std::vector<Slot> slots_;  // none, or a power of two
  size_t count_ = 0;
};

}  // namespace mh
