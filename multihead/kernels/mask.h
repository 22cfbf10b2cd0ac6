// Who may attend to whom. Masks are types, not strings or magic numbers; true means "may attend".
#pragma once

#include <cstdint>
#include <limits>

#include "multihead/base/error.h"

namespace mh {

/// Bits of a dense mask: bit j of row i says whether query row i (of all Nq rows) may attend to key j of its
/// own sequence. REQUIRES: 64 * words_per_row >= the longest sequence of keys; the bits outlive the mask.
struct MaskBits {
  const uint64_t* words = nullptr;  // [Nq, words_per_row]
  int64_t words_per_row = 0;
};

/// A masked position has weight exactly 0, whatever its value holds, NaN included. A row that may attend to
/// nothing gives output 0 and gradient 0.
class Mask {
 public:
  enum class Kind { kNone, kBand, kDense };

  /// Every query attends to every key of its sequence.
  static Mask none() { return Mask(); }
  /// Aligned at the end: the last query sees all keys, query i sees keys j <= i + Tk - Tq.
  static Mask causal() { return band(kUnlimited, 0, Alignment::kEnd); }
  /// torch's meaning for Tq != Tk, aligned at the top left: query i sees keys j <= i.
  static Mask causal_top_left() { return band(kUnlimited, 0, Alignment::kStart); }
  /// Keys from `left` before to `right` after the query's own position, aligned at the end.
  /// Throws UsageError when either is negative.
  static Mask window(int64_t left, int64_t right) {
    if (left < 0 || right < 0) throw UsageError("Mask::window: left and right are counts of keys, 0 or more");
    return band(left, right, Alignment::kEnd);
  }
  /// Bit by bit. Throws UsageError when there are none.
  static Mask dense(MaskBits bits) {
    if (bits.words == nullptr)
      throw UsageError("Mask::dense: bits.words is null; expected [Nq, words_per_row]");
    Mask mask;
    mask.kind_ = Kind::kDense;
    mask.bits_ = bits;
    return mask;
  }

  Kind kind() const { return kind_; }
  const MaskBits& bits() const { return bits_; }

  /// The keys [begin, end) that a band (or no mask) leaves to query i, of queries and keys in one sequence.
  struct Range {
    int64_t begin, end;
  };
  Range visible(int64_t i, int64_t queries, int64_t keys) const {
    if (kind_ != Kind::kBand) return {0, keys};
    const int64_t own = i + (alignment_ == Alignment::kEnd ? keys - queries : 0);
    const int64_t begin = left_ == kUnlimited ? 0 : own - left_;
    const int64_t end = right_ == kUnlimited ? keys : own + right_ + 1;
    const int64_t b = begin < 0 ? 0 : begin, e = end > keys ? keys : end;
    return {b < e ? b : 0, b < e ? e : 0};
  }
  /// Whether query i (row `row` of all queries) may attend to key j.
  bool allows(int64_t row, int64_t i, int64_t j, int64_t queries, int64_t keys) const {
    if (kind_ == Kind::kDense) return (bits_.words[row * bits_.words_per_row + j / 64] >> (j % 64)) & 1;
    const Range range = visible(i, queries, keys);
    return range.begin <= j && j < range.end;
  }

 private:
  enum class Alignment { kStart, kEnd };
  static constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();
  static Mask band(int64_t left, int64_t right, Alignment alignment) {
    Mask mask;
    mask.kind_ = Kind::kBand;
    mask.left_ = left;
    mask.right_ = right;
    mask.alignment_ = alignment;
    return mask;
  }

  Kind kind_ = Kind::kNone;
  Alignment alignment_ = Alignment::kEnd;
  int64_t left_ = kUnlimited, right_ = kUnlimited;
  MaskBits bits_;
};

}  // namespace mh
