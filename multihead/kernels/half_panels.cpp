#include "multihead/kernels/half_panels.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "multihead/kernels/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "multihead/kernels/half_panels.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "multihead/kernels/micro_kernel-inl.h"

HWY_BEFORE_NAMESPACE();
namespace mh::HWY_NAMESPACE {
namespace {

using Vector = hn::Vec<FloatTag>;
using Vectors = Vector[kPanelVectors];
using WordTag = hn::RebindToUnsigned<FloatTag>;

HWY_INLINE hn::Vec<WordTag> upper_half(hn::Vec<WordTag> pair) {
#if HWY_TARGET == HWY_AVX2
  // A mask would take the last register, and compilers make one of two shifts unless they see nothing of the first.
  auto lower = hn::ShiftRight<16>(pair);
  asm("" : "+x"(lower.raw));
  return hn::ShiftLeft<16>(lower);
#else
  return hn::And(pair, hn::Set(WordTag(), 0xFFFF0000u));
#endif
}

/// The numbers of k, which is odd or not, as float32.
template <NumberType kType, bool kOdd>
HWY_INLINE void read_halves(const std::byte* panel, int64_t k, Vectors& numbers) {
  HWY_UNROLL(4)
  for (int v = 0; v < kPanelVectors; ++v) {
    if constexpr (kType == NumberType::kFloat16) {
      const hn::Rebind<hwy::float16_t, FloatTag> half;
      const auto* const at = reinterpret_cast<const hwy::float16_t*>(panel) + k * kPanel;
      numbers[v] = hn::PromoteTo(FloatTag(), hn::LoadU(half, at + v * kLanes));
    } else {
      const auto* const at = reinterpret_cast<const uint32_t*>(panel) + k / 2 * kPanel;
      const auto pair = hn::LoadU(WordTag(), at + v * kLanes);
      numbers[v] = hn::BitCast(FloatTag(), kOdd ? upper_half(pair) : hn::ShiftLeft<16>(pair));
    }
  }
}

/// use(numbers) for each k of [begin, end), in order.
template <NumberType kType, class Use>
HWY_INLINE void for_halves(const std::byte* panel, int64_t begin, int64_t end, Use& use) {
  Vectors numbers;
  int64_t k = begin;
  if (k % 2 == 1 && k < end) {
    read_halves<kType, true>(panel, k++, numbers);
    use(numbers);
  }
  for (; k + 2 <= end; k += 2) {
    read_halves<kType, false>(panel, k, numbers);
    use(numbers);
    read_halves<kType, true>(panel, k + 1, numbers);
    use(numbers);
  }
  if (k < end) {
    read_halves<kType, false>(panel, k, numbers);
    use(numbers);
  }
}

/// Adds up the sums of so many rows of C as multiply_tile() does.
template <int kRows>
struct AddUpHalves {
  const float* a[kRows];
  Vector sum[kRows][kPanelVectors];

  HWY_INLINE void operator()(const Vectors& numbers) {
    HWY_UNROLL(8)
    for (int i = 0; i < kRows; ++i) {
      const Vector ak = hn::Set(FloatTag(), *a[i]++);
      HWY_UNROLL(4)
      for (int v = 0; v < kPanelVectors; ++v) sum[i][v] = hn::MulAdd(ak, numbers[v], sum[i][v]);
    }
  }
};

/// Rows first to first + kRows - 1 of C.
template <NumberType kType, int kRows>
HWY_NOINLINE void multiply_half_tile(const ConstMatrixView& a, int64_t first, const std::byte* panel,
                                     int64_t k0, const MatrixView& c, bool add) {
  AddUpHalves<kRows> add_up;
  HWY_UNROLL(8)
  for (int i = 0; i < kRows; ++i) {
    add_up.a[i] = a.row(first + i);
    HWY_UNROLL(4)
    for (int v = 0; v < kPanelVectors; ++v) add_up.sum[i][v] = hn::Zero(FloatTag());
  }
  for_halves<kType>(panel, k0, k0 + a.cols, add_up);
  store_tile<kRows, kPanelVectors>(add_up.sum, c.row(first), c.stride, c.cols, add);
}

/// multiply.operator()<n>(first) for tiles of n rows that together are all.
template <class Multiply>
void for_tiles(int64_t rows, const Multiply& multiply) {
  int64_t first = 0;
  for (; rows - first >= kTileRows; first += kTileRows) multiply.template operator()<kTileRows>(first);
  switch (rows - first) {
    case 1:
      return multiply.template operator()<1>(first);
    case 2:
      return multiply.template operator()<2>(first);
    case 3:
      return multiply.template operator()<3>(first);
    case 4:
      return multiply.template operator()<4>(first);
    case 5:
      return multiply.template operator()<5>(first);
    default:
      return;
  }
}

template <NumberType kType>
void multiply_half_tiles(const ConstMatrixView& a, const std::byte* panel, int64_t k0, const MatrixView& c,
                         bool add) {
  for_tiles(a.rows,
            [&]<int kRows>(int64_t first) { multiply_half_tile<kType, kRows>(a, first, panel, k0, c, add); });
}

#if HWY_TARGET == HWY_AVX3
// Highway has no target with BF16 that this library is compiled for.
HWY_INLINE Vector add_pairs(Vector sum, hn::Vec<WordTag> a, hn::Vec<WordTag> b) {
  asm("vdpbf16ps %2, %1, %0" : "+v"(sum.raw) : "v"(b.raw), "v"(a.raw));
  return sum;
}

template <int kRows>
HWY_NOINLINE void multiply_pair_tile(const HalfRows& a, int64_t first, const std::byte* panel,
                                     const MatrixView& c, bool add) {
  const uint16_t* rows[kRows];
  Vector sum[kRows][kPanelVectors];
  HWY_UNROLL(8)
  for (int i = 0; i < kRows; ++i) {
    rows[i] = a.numbers + (first + i) * a.depth;
    HWY_UNROLL(4)
    for (int v = 0; v < kPanelVectors; ++v) sum[i][v] = hn::Zero(FloatTag());
  }
  const auto* b = reinterpret_cast<const uint32_t*>(panel);
  for (int64_t k = 0; k < a.depth; k += 2, b += kPanel) {
    hn::Vec<WordTag> pairs[kPanelVectors];
    HWY_UNROLL(4)
    for (int v = 0; v < kPanelVectors; ++v) pairs[v] = hn::LoadU(WordTag(), b + v * kLanes);
    HWY_UNROLL(8)
    for (int i = 0; i < kRows; ++i) {
      uint32_t pair = 0;
      hwy::CopyBytes<4>(rows[i] + k, &pair);
      const auto of_row = hn::Set(WordTag(), pair);
      HWY_UNROLL(4)
      for (int v = 0; v < kPanelVectors; ++v) sum[i][v] = add_pairs(sum[i][v], of_row, pairs[v]);
    }
  }
  store_tile<kRows, kPanelVectors>(sum, c.row(first), c.stride, c.cols, add);
}
#endif

}  // namespace

void multiply_halves_of(const ConstMatrixView& a, NumberType type, const std::byte* panel, int64_t k0,
                        const MatrixView& c, bool add) {
  if (type == NumberType::kBFloat16) return multiply_half_tiles<NumberType::kBFloat16>(a, panel, k0, c, add);
  multiply_half_tiles<NumberType::kFloat16>(a, panel, k0, c, add);
}

void unpack_halves(NumberType type, const std::byte* panel, int64_t begin, int64_t end, float* to,
                   int64_t stride) {
  WriteDown write{to, stride};
  if (type == NumberType::kBFloat16) return for_halves<NumberType::kBFloat16>(panel, begin, end, write);
  for_halves<NumberType::kFloat16>(panel, begin, end, write);
}

void multiply_rows_of_halves([[maybe_unused]] const HalfRows& a, [[maybe_unused]] const std::byte* panel,
                             [[maybe_unused]] const MatrixView& c, [[maybe_unused]] bool add) {
#if HWY_TARGET == HWY_AVX3
  for_tiles(a.rows, [&]<int kRows>(int64_t first) { multiply_pair_tile<kRows>(a, first, panel, c, add); });
#else
  MH_ASSERT(false);
#endif
}

}  // namespace mh::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mh {
HWY_EXPORT(multiply_halves_of);
HWY_EXPORT(unpack_halves);
HWY_EXPORT(multiply_rows_of_halves);

namespace {

uint16_t nearest_bfloat16(float number) {
  return std::isnan(number) ? uint16_t{0x7FC0} : to_bfloat16(number);
}

template <NumberType kFrom, NumberType kTo>
uint16_t half_at(const std::byte* at) {
  if constexpr (kFrom == NumberType::kFloat32) {
    float number = 0;
    std::memcpy(&number, at, sizeof number);
    return nearest_bfloat16(number);
  }
  uint16_t bits = 0;
  std::memcpy(&bits, at, sizeof bits);
  return kFrom == kTo ? bits : nearest_bfloat16(from_float16(bits));
}

/// A cache line of a column at a time, so that both sides stay in the nearest cache whichever way the matrix lies.
template <NumberType kFrom, NumberType kTo>
void pack_halves(const StoredMatrix& b, int64_t first, int64_t width, int64_t columns, std::byte* to) {
  constexpr int64_t kAtOnce = 32;
  const int64_t step = b.row_stride * number_size(kFrom);
  for (int64_t begin = 0; begin < b.rows; begin += kAtOnce) {
    const int64_t end = std::min(begin + kAtOnce, b.rows);
    for (int64_t n = 0; n < width; ++n) {
      const std::byte* from = b.at(begin, first + n);
      for (int64_t k = begin; k < end; ++k, from += step) {
        const int64_t place =
            kTo == NumberType::kFloat16 ? k * columns + n : (k - k % 2) * columns + 2 * n + k % 2;
        const uint16_t bits = half_at<kFrom, kTo>(from);
        std::memcpy(to + 2 * place, &bits, sizeof bits);
      }
    }
  }
}

}  // namespace

int64_t half_panel_bytes(int64_t depth, int64_t columns) {
  return even_depth(depth) * columns * 2;
}

void pack_half_panel(const StoredMatrix& b, NumberType type, int64_t first, int64_t width, int64_t columns,
                     std::byte* to) {
  MH_ASSERT(0 <= first && first + width <= b.cols && width <= columns);
  MH_ASSERT(type == NumberType::kBFloat16 || type == b.type);
  constexpr NumberType kHalf = NumberType::kFloat16, kBrain = NumberType::kBFloat16;
  if (width < columns || b.rows % 2 == 1)
    std::memset(to, 0, static_cast<size_t>(half_panel_bytes(b.rows, columns)));
  switch (b.type) {
    case NumberType::kFloat32:
      return pack_halves<NumberType::kFloat32, kBrain>(b, first, width, columns, to);
    case NumberType::kBFloat16:
      return pack_halves<kBrain, kBrain>(b, first, width, columns, to);
    case NumberType::kFloat16:
      return type == kHalf ? pack_halves<kHalf, kHalf>(b, first, width, columns, to)
                           : pack_halves<kHalf, kBrain>(b, first, width, columns, to);
  }
}

void multiply_half_panel(ConstMatrixView a, NumberType type, const std::byte* b, int64_t k0, MatrixView c,
                         bool add) {
  MH_ASSERT(type != NumberType::kFloat32 && a.rows == c.rows);
  HWY_DYNAMIC_DISPATCH(multiply_halves_of)(a, type, b, k0, c, add);
}

void unpack_half_panel(NumberType type, const std::byte* b, int64_t begin, int64_t end, float* to,
                       int64_t stride) {
  MH_ASSERT(type != NumberType::kFloat32);
  HWY_DYNAMIC_DISPATCH(unpack_halves)(type, b, begin, end, to, stride);
}

void multiply_half_rows(const HalfRows& rows, const std::byte* panel, MatrixView c, bool add) {
  MH_ASSERT(rows.rows == c.rows);
  HWY_DYNAMIC_DISPATCH(multiply_rows_of_halves)(rows, panel, c, add);
}

}  // namespace mh
#endif
