// Part of the attention kernel: rows of numbers where they lie in memory, as float32 or bfloat16, and copies of them.
#if defined(MULTIHEAD_KERNELS_ATTENTION_STORED_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MULTIHEAD_KERNELS_ATTENTION_STORED_ROWS_INL_H_
#undef MULTIHEAD_KERNELS_ATTENTION_STORED_ROWS_INL_H_
#else
#define MULTIHEAD_KERNELS_ATTENTION_STORED_ROWS_INL_H_
#endif

#include <hwy/cache_control.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <type_traits>

#include "multihead/base/aligned.h"
#include "multihead/base/stored_matrix.h"
#include "multihead/kernels/attention_lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace mh {
namespace HWY_NAMESPACE {
namespace {  // NOLINT: one copy for each source and target

/// Rows somewhere in memory: row j starts at data + (index ? index[j] : j) * stride. T is float, or uint16_t for keys and
/// values that a cache has as bfloat16.
template <class T>
struct StoredRows {
  const T* data;
  int64_t stride;
  const int32_t* index = nullptr;

  const T* row(int64_t j) const { return data + (index ? int64_t{index[j]} : j) * stride; }
  StoredRows from(int64_t j) const {
    return index ? StoredRows{data, stride, index + j} : StoredRows{data + j * stride, stride};
  }
};
using Rows = StoredRows<float>;

/// Numbers of a cache line.
template <class T>
constexpr int kLine = 64 / sizeof(T);

/// Prefetches the first `size` numbers of n rows.
template <class T>
HWY_INLINE void prefetch_rows(StoredRows<T> rows, int64_t n, int size) {
  if (size <= 2 * kLine<T>) {  // most heads: no inner loop, since its end would be mispredicted for each row
    const int last = size <= kLine<T> ? 0 : kLine<T>;
    for (int64_t j = 0; j < n; ++j) {
      const T* row = rows.row(j);
      hwy::Prefetch(row);
      hwy::Prefetch(row + last);
    }
    return;
  }
  for (int64_t j = 0; j < n; ++j) {
    const T* row = rows.row(j);
    for (int c = 0; c < size; c += 4 * kLine<T>) {
      hwy::Prefetch(row + c);
      hwy::Prefetch(row + std::min(c + kLine<T>, size - 1));
      hwy::Prefetch(row + std::min(c + 2 * kLine<T>, size - 1));
      hwy::Prefetch(row + std::min(c + 3 * kLine<T>, size - 1));
    }
  }
}

/// Rows to prefetch while products are computed. They are short and far apart, so no hardware prefetcher finds them.
class Ahead {
 public:
  template <class T>
  void add(StoredRows<T> rows, int64_t n, int size) {
    if (n <= 0 || kinds_ == kMost || rows.index) return;
    wanted_[kinds_++] = {reinterpret_cast<const char*>(rows.data), rows.stride * int64_t{sizeof(T)}, n,
                         (size + kLine<T> - 1) / kLine<T>};
  }

  /// Prefetches the next cache line, if one is left. The end of a row is no branch: it would be mispredicted.
  HWY_INLINE void ask() {
    if (kind_ == kinds_) return;
    Wanted& w = wanted_[kind_];
    hwy::Prefetch(w.row + line_ * kLine<char>);
    const int64_t ends = ++line_ == w.lines;
    line_ &= ends - 1;
    w.row += w.stride & -ends;
    w.n -= ends;
    kind_ += w.n == 0;
  }

 private:
  static constexpr int kMost = 8;
  struct Wanted {
    const char* row;  // the next of n
    int64_t stride, n, lines;
  };
  Wanted wanted_[kMost];
  int kinds_ = 0, kind_ = 0;
  int64_t line_ = 0;
};

HWY_INLINE float as_float(float number) {
  return number;
}
HWY_INLINE float as_float(uint16_t half) {
  return from_bfloat16(half);
}

alignas(64) constexpr float kZeros[1024] = {};  // the row of a lane that holds no query

/// n <= 16 rows of `size` numbers, times `factor`, as [size][16]; the lanes from n on are 0.
HWY_NOINLINE inline void transpose_block(Rows rows, int n, int size, float factor, float* HWY_RESTRICT out) {
  const DF d;
  const float* row[kBlock];
  for (int i = 0; i < kBlock; ++i) row[i] = i < n ? rows.data + i * rows.stride : kZeros;
  const auto f = hn::Set(d, factor);
  int c = 0;
  for (; c + 4 <= size; c += 4) {
    for (int w = 0; w < kVectors; ++w) {
      VF column[4];
      load_columns(row + w * kLanes, c, column);
      for (int i = 0; i < 4; ++i) hn::Store(hn::Mul(column[i], f), d, out + (c + i) * kBlock + w * kLanes);
    }
  }
  for (; c < size; ++c) {
    for (int i = 0; i < kBlock; ++i) out[c * kBlock + i] = row[i][c] * factor;
  }
}

/// The distance of copied rows: whole cache lines, and for long rows an odd number of them, so that the
/// same columns of many rows do not fall into the same sets of the cache.
constexpr int64_t copied_stride(int64_t size) {
  const int64_t lines = (size + 15) / 16;
  return 16 * (lines > 4 && lines % 2 == 0 ? lines + 1 : lines);
}

/// Copies n rows to `to`, `stride` numbers apart, as float32. Returns whether they have neither NaN nor infinity.
template <class T>
HWY_NOINLINE bool copy_rows(StoredRows<T> rows, int64_t n, int size, float* HWY_RESTRICT to, int64_t stride) {
  const DF d;
  auto sum = hn::Zero(d);  // of numbers times 0: 0 or NaN
  for (int64_t j = 0; j < n; ++j, to += stride) {
    const T* from = rows.row(j);
    int c = 0;
    for (; c + kLanes <= size; c += kLanes) {
      const VF numbers = load_all(from + c);
      sum = hn::MulAdd(numbers, hn::Zero(d), sum);
      hn::StoreU(numbers, d, to + c);
    }
    if (c < size) {
      const VF numbers = load_first(from + c, size - c);
      sum = hn::MulAdd(numbers, hn::Zero(d), sum);
      store_first(numbers, to + c, size - c);
    }
  }
  return hn::AllTrue(d, hn::Eq(sum, hn::Zero(d)));
}

/// The rows as float32 and one after the other: where they are unless `copied`, else a copy in `memory`. A copy sets
/// *finite to whether they have neither NaN nor infinity.
template <class T>
HWY_INLINE Rows plain_rows(StoredRows<T> rows, int64_t n, int size, bool copied, AlignedBuffer<float>& memory,
                           std::optional<bool>* finite = nullptr) {
  if constexpr (std::is_same_v<T, float>) {
    if (!copied) return rows;
  }
  const int64_t stride = copied_stride(size);
  float* const to = memory.get((n + 255) / 256 * 256 * stride);  // so that it seldom grows
  const bool all_finite = copy_rows(rows, n, size, to, stride);
  if (finite) *finite = all_finite;
  return {to, stride};
}

/// Whether rows [0, n) have neither NaN nor infinity.
template <class T>
HWY_NOINLINE bool all_finite(StoredRows<T> rows, int64_t n, int size) {
  const DF d;
  auto sum = hn::Zero(d);  // of numbers times 0: 0 or NaN
  for (int64_t j = 0; j < n; ++j) {
    const T* row = rows.row(j);
    int c = 0;
    for (; c + kLanes <= size; c += kLanes) sum = hn::MulAdd(load_all(row + c), hn::Zero(d), sum);
    if (c < size) sum = hn::MulAdd(load_first(row + c, size - c), hn::Zero(d), sum);
  }
  return hn::AllTrue(d, hn::Eq(sum, hn::Zero(d)));
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace mh
HWY_AFTER_NAMESPACE();
#endif
