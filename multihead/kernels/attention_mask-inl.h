// Part of the attention kernel: masks and dropout as 16 bits for each key, one bit for each query of a
// block.
#if defined(MULTIHEAD_KERNELS_ATTENTION_MASK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MULTIHEAD_KERNELS_ATTENTION_MASK_INL_H_
#undef MULTIHEAD_KERNELS_ATTENTION_MASK_INL_H_
#else
#define MULTIHEAD_KERNELS_ATTENTION_MASK_INL_H_
#endif

#include <algorithm>

#include "multihead/kernels/attention_lanes-inl.h"
#include "multihead/kernels/dropout.h"
#include "multihead/kernels/mask.h"
#include "multihead/kernels/philox-inl.h"

HWY_BEFORE_NAMESPACE();
namespace mh {
namespace HWY_NAMESPACE {
namespace {  // NOLINT: one copy for each source and target

/// Which keys a block of queries may see, for a mask of any kind.
struct BlockMask {
  int64_t begin = 0, end = 0;            // keys that any query sees
  int64_t full_begin = 0, full_end = 0;  // keys that all of them see
  bool dense = false;
  HWY_ALIGN int32_t row_begin[kBlock];
  HWY_ALIGN int32_t row_end[kBlock];

  /// Whether some query may not see some key in [from, to).
  bool cuts(int64_t from, int64_t to) const { return dense || from < full_begin || full_end < to; }
};

/// Calls visit(from, to) for the parts of [begin, end) that some query may not see.
template <class Visit>
HWY_INLINE void for_cut_keys(const BlockMask& range, int64_t begin, int64_t end, Visit visit) {
  if (range.dense || range.full_begin >= range.full_end) return visit(begin, end);
  if (begin < range.full_begin) visit(begin, range.full_begin < end ? range.full_begin : end);
  if (end > range.full_end) visit(range.full_end > begin ? range.full_end : begin, end);
}

/// Sets `range` for queries first ... first + n - 1 of a sequence. Lanes from n on see every key that any
/// query sees, so they never make a mask necessary.
HWY_NOINLINE inline void block_range(const Mask& mask, int64_t first, int n, int64_t queries, int64_t keys,
                                     BlockMask& range) {
  range.dense = mask.kind() == Mask::Kind::kDense;
  range.begin = range.full_begin = 0;
  range.end = range.full_end = keys;
  if (mask.kind() == Mask::Kind::kNone) return;
  if (range.dense) {
    range.full_end = 0;
    return;
  }
  range.begin = keys;
  range.end = 0;
  for (int i = 0; i < n; ++i) {
    const Mask::Range r = mask.visible(first + i, queries, keys);
    range.row_begin[i] = static_cast<int32_t>(r.begin);
    range.row_end[i] = static_cast<int32_t>(r.end);
    if (r.begin < r.end) {
      range.begin = r.begin < range.begin ? r.begin : range.begin;
      range.end = r.end > range.end ? r.end : range.end;
    }
    range.full_begin = r.begin > range.full_begin ? r.begin : range.full_begin;
    range.full_end = r.end < range.full_end ? r.end : range.full_end;
  }
  if (range.begin >= range.end) range.begin = range.end = 0;
  for (int i = n; i < kBlock; ++i) {
    range.row_begin[i] = static_cast<int32_t>(range.begin);
    range.row_end[i] = static_cast<int32_t>(range.end);
  }
}

/// allow[j - begin] = the 16 bits "lane may attend to key j", for keys [begin, end). `row`: of all query
/// rows.
HWY_NOINLINE inline void allow_bits(const Mask& mask, const BlockMask& range, int64_t row, int n,
                                    int64_t begin, int64_t end, uint16_t* allow) {
  const DI d;
  if (!range.dense) {
    for (int64_t j = begin; j < end; ++j) {
      uint16_t bits = 0;
      const auto key = hn::Set(d, static_cast<int32_t>(j));
      for (int w = 0; w < kVectors; ++w) {
        const auto from = hn::Load(d, range.row_begin + w * kLanes),
                   to = hn::Load(d, range.row_end + w * kLanes);
        bits |= mask_bits(hn::RebindMask(DF(), hn::AndNot(hn::Gt(from, key), hn::Gt(to, key))), w);
      }
      allow[j - begin] = bits;
    }
    return;
  }
  const uint64_t* words = mask.bits().words + row * mask.bits().words_per_row;
  for (int64_t j = begin; j < end;) {
    const int64_t word = j / 32, stop = (word + 1) * 32 < end ? (word + 1) * 32 : end;
    HWY_ALIGN int32_t part[kBlock];
    for (int i = 0; i < kBlock; ++i) {
      const uint64_t bits = i < n ? words[i * mask.bits().words_per_row + word / 2] : ~uint64_t{0};
      part[i] = static_cast<int32_t>(static_cast<uint32_t>(bits >> (word % 2 * 32)));
    }
    for (; j < stop; ++j) {
      uint16_t bits = 0;
      const auto bit = hn::Set(d, static_cast<int32_t>(1u << (j % 32)));
      for (int w = 0; w < kVectors; ++w) {
        bits |= mask_bits(hn::RebindMask(DF(), hn::TestBit(hn::Load(d, part + w * kLanes), bit)), w);
      }
      allow[j - begin] = bits;
    }
  }
}

/// keep[j - begin] = the 16 bits "dropout keeps the weight from this lane to key j", for keys [begin, end).
/// REQUIRES: first is a multiple of 16; keep has room for 15 more.
HWY_NOINLINE inline void keep_bits(const Dropout& dropout, int64_t sentence, int64_t head, int64_t first,
                                   int64_t begin, int64_t end, uint16_t* keep) {
  const DU d;
  const hn::Rebind<uint16_t, DU> d16;
  const auto limit =
      hn::Set(d, dropout.threshold() << 16);  // compared with the half-word in the upper 16 bits
  for (int64_t j = begin; j < end; j += kLanes) {
    auto bits = hn::Zero(d);
    for (int group = 0; group < 2; ++group) {
      const PhiloxCounter counter = weight_counter(sentence, head, first + group * 8, j);
      PhiloxVectors words;
      words.word[0] = hn::Iota(d, counter[0]);
      for (int w = 1; w < 4; ++w) words.word[w] = hn::Set(d, counter[static_cast<size_t>(w)]);
      words = philox_vectors(words, dropout.stream);
      MH_UNROLL for (int q = 0; q < 8; ++q) {
        const auto word = words.word[q / 2];
        const auto kept = hn::Not(hn::Gt(limit, q % 2 == 0 ? hn::ShiftLeft<16>(word) : word));
        bits = hn::Or(bits, hn::IfThenElseZero(kept, hn::Set(d, 1u << (group * 8 + q))));
      }
    }
    hn::StoreU(hn::DemoteTo(d16, hn::BitCast(DI(), bits)), d16, keep + (j - begin));
  }
}

/// Splits keys [begin, end) into parts, so that all keys of a part are seen by the same strips, and calls
/// visit(j, n, a, count) for each: strips [a, a + count), and no others, see keys [begin + j, begin + j +
/// n); count may be 0. Strip s sees keys [from[s], to[s]); neighbouring strips see neighbouring keys.
template <class Visit>
HWY_INLINE void for_each_part(const int64_t* from, const int64_t* to, int strips, int64_t begin, int64_t end,
                              Visit visit) {
  for (int64_t j = begin; j < end;) {
    int a = 0;
    while (a < strips && !(from[a] <= j && j < to[a])) ++a;
    int z = a;
    while (z < strips && from[z] <= j && j < to[z]) ++z;
    int64_t next = end;
    for (int s = 0; s < strips; ++s) {
      if (from[s] > j) next = std::min(next, from[s]);
      if (to[s] > j) next = std::min(next, to[s]);
    }
    visit(j - begin, next - j, a, z - a);
    j = next;
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace mh
HWY_AFTER_NAMESPACE();
#endif
