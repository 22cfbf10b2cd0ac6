#include "multihead/kernels/dropout.h"

#include <fmt/format.h>

#include <algorithm>

#include "multihead/base/thread_pool.h"
#include "multihead/kernels/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "multihead/kernels/dropout.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "multihead/kernels/philox-inl.h"

HWY_BEFORE_NAMESPACE();
namespace mh::HWY_NAMESPACE {
namespace {

/// One row of `columns` numbers. A counter lane serves 8 columns that lie 16 apart.
HWY_INLINE void drop_row(PhiloxKey stream, int64_t sentence, int64_t row, uint32_t threshold,
                         float keep_scale, const float* x, float* y, int64_t columns) {
  const hn::ScalableTag<float> d;
  const hn::RebindToUnsigned<decltype(d)> du;
  constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(d));
  static_assert(16 % kLanes == 0);
  const auto scale = hn::Set(d, keep_scale);
  const auto limit = hn::Set(du, threshold << 16);  // compared with the half-word in the upper 16 bits
  for (int64_t block = 0; block < columns; block += 128) {
    for (int64_t lane = 0; lane < 16; lane += kLanes) {
      const PhiloxCounter counter = element_counter(sentence, row, block + lane);
      PhiloxVectors bits;
      bits.word[0] = hn::Iota(du, counter[0]);
      for (int w = 1; w < 4; ++w) bits.word[w] = hn::Set(du, counter[static_cast<size_t>(w)]);
      bits = philox_vectors(bits, stream);
      for (int part = 0; part < 8; ++part) {
        const int64_t begin = block + part * 16 + lane;
        if (begin >= columns) break;
        const auto word = bits.word[part / 2];
        const auto half = part % 2 == 0 ? hn::ShiftLeft<16>(word) : word;
        const auto factor = hn::IfThenElseZero(hn::RebindMask(d, hn::Not(hn::Gt(limit, half))), scale);
        if (begin + kLanes <= columns) {
          hn::StoreU(hn::Mul(hn::LoadU(d, x + begin), factor), d, y + begin);
        } else {
          HWY_ALIGN float factors[16];
          hn::Store(factor, d, factors);
          for (int64_t c = begin; c < columns; ++c) y[c] = x[c] * factors[c - begin];
        }
      }
    }
  }
}

}  // namespace

/// Rows [begin, end) of x, where row 0 of x is row `first` of the batch.
void drop_rows(const Dropout& settings, const ConstMatrixView& x, const MatrixView& y, int64_t first,
               int64_t begin, int64_t end) {
  const auto& offsets = settings.offsets;
  auto s =
      static_cast<size_t>(std::upper_bound(offsets.begin(), offsets.end(), first + begin) - offsets.begin()) -
      1;
  for (int64_t i = begin; i < end; ++i) {
    while (first + i >= offsets[s + 1]) ++s;
    drop_row(settings.stream, settings.sentences[s], first + i - offsets[s], settings.threshold(),
             settings.keep_scale(), x.row(i), y.row(i), x.cols);
  }
}

}  // namespace mh::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mh {
HWY_EXPORT(drop_rows);

namespace {

uint32_t half_word(const PhiloxCounter& words, int64_t half) {
  const uint32_t word = words[static_cast<size_t>(half / 2)];
  return half % 2 == 0 ? word & 0xFFFF : word >> 16;
}

}  // namespace

PhiloxKey dropout_stream(uint64_t seed, uint64_t update, uint32_t stream) {
  // The last word keeps these numbers apart from a Random of the same seed.
  const PhiloxCounter mixed =
      philox({static_cast<uint32_t>(update), static_cast<uint32_t>(update >> 32), stream, 0x64726F70},
             {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
  return {mixed[0], mixed[1]};
}

uint32_t element_bits(PhiloxKey stream, int64_t sentence, int64_t row, int64_t column) {
  return half_word(philox(element_counter(sentence, row, column), stream), column / 16 % 8);
}

uint32_t weight_bits(PhiloxKey stream, int64_t sentence, int64_t head, int64_t query, int64_t key) {
  return half_word(philox(weight_counter(sentence, head, query, key), stream), query % 8);
}

void dropout(const Dropout& settings, ConstMatrixView x, MatrixView y, int64_t row_begin) {
  if (x.rows != y.rows || x.cols != y.cols) {
    throw ShapeError(fmt::format("dropout: x is [{},{}] and y [{},{}]; both must be alike", x.rows, x.cols,
                                 y.rows, y.cols));
  }
  if (!(settings.rate >= 0 && settings.threshold() < 65536)) {
    throw UsageError(fmt::format("dropout: rate {} is not in [0, 1)", settings.rate));
  }
  if (x.rows == 0 || x.cols == 0) return;
  if (!settings.active()) {
    if (x.data != y.data) {
      for (int64_t i = 0; i < x.rows; ++i) std::copy_n(x.row(i), x.cols, y.row(i));
    }
    return;
  }
  const auto& offsets = settings.offsets;
  if (offsets.size() < 2 || settings.sentences.size() + 1 != offsets.size()) {
    throw ShapeError(
        fmt::format("dropout: {} offsets and {} sentences; expected one offset more than sentences",
                    offsets.size(), settings.sentences.size()));
  }
  if (row_begin < offsets.front() || row_begin + x.rows > offsets.back()) {
    throw ShapeError(fmt::format("dropout: rows [{}, {}) lie outside of the offsets' [{}, {})", row_begin,
                                 row_begin + x.rows, offsets.front(), offsets.back()));
  }
  const int64_t rows = std::max<int64_t>(1, 32768 / x.cols);  // in a task
  parallel_for((x.rows + rows - 1) / rows, [&](int64_t task) {
    HWY_DYNAMIC_DISPATCH(drop_rows)
    (settings, x, y, row_begin, task * rows, std::min(x.rows, (task + 1) * rows));
  });
}

}  // namespace mh
#endif
