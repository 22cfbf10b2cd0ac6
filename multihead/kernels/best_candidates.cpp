#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "multihead/base/thread_pool.h"
#include "multihead/kernels/gemm.h"
#include "multihead/kernels/product_rows.h"
#include "multihead/kernels/simd.h"
#include "multihead/kernels/vocabulary.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "multihead/kernels/best_candidates.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "multihead/kernels/vocabulary-inl.h"

#ifndef MULTIHEAD_BEST_CANDIDATES_TASK
#define MULTIHEAD_BEST_CANDIDATES_TASK
namespace mh {
/// One task: a block of rows against the panels of groups [first, last).
struct CandidatesTask {
  const OutputLayer* layer;
  ProductRows states;  // [rows, d], rows <= kRowsPerTask
  int64_t first, last, groups;
  std::span<const int32_t> suppressed;
  int k;
  Candidate* best;  // [rows, k] of these groups, by logit, best first
  float* shifts;    // of group g and row r at g * stride + r: a logit near the largest
  float* sums;      // likewise: of exp(logit - shift)
  int64_t stride;
};
}  // namespace mh
#endif

HWY_BEFORE_NAMESPACE();
namespace mh::HWY_NAMESPACE {
namespace {

constexpr float kNothing = -std::numeric_limits<float>::infinity();
// Logits may be this much above the shift; a sum of exponentials stays far from overflow.
constexpr float kHeadroom = 40;

/// 2^t for t below 100; below -126 it stays at 2^-126, which no sum here notices.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V exp2_bounded(D d, V t) {
  const hn::RebindToSigned<D> di;
  t = hn::Max(hn::Set(d, -126.0f), t);
  const V n = hn::Round(t);
  const V f = hn::Sub(t, n);
  const V p = exp2_fraction(d, f);
  return hn::BitCast(d, hn::Add(hn::BitCast(di, p), hn::ShiftLeft<23>(hn::ConvertTo(di, n))));
}

/// Puts what is above the last of the k best among them. Tokens come in rising order, so that a later one
/// with the same logit stays behind.
void insert_candidates(const CandidatesTask& task, const float* row, int32_t column, Candidate* best) {
  const FloatTag d;
  const int k = task.k;
  for (int v = 0; v < kPanelVectors; ++v) {
    const auto logits = hn::Load(d, row + v * kLanes);
    uint8_t bytes[8] = {};
    hn::StoreMaskBits(d, hn::Gt(logits, hn::Set(d, best[k - 1].log_probability)), bytes);
    uint32_t bits = 0;
    std::memcpy(&bits, bytes, sizeof(bits));
    for (; bits != 0; bits &= bits - 1) {
      const int32_t j = v * static_cast<int32_t>(kLanes) + std::countr_zero(bits);
      if (!(row[j] > best[k - 1].log_probability)) continue;
      const int32_t token = column + j;
      if (std::find(task.suppressed.begin(), task.suppressed.end(), token) != task.suppressed.end()) continue;
      int at = k - 1;
      while (at > 0 && row[j] > best[at - 1].log_probability) {
        best[at] = best[at - 1];
        --at;
      }
      best[at] = {token, row[j]};
    }
  }
}

}  // namespace

void search_panels(const CandidatesTask& task) {
  const FloatTag d;
  HWY_ALIGN float logits[kRowsPerTask * kPanel];
  HWY_ALIGN float lanes[kRowsPerTask * kLanes];  // partial sums
  float shifts[kRowsPerTask];
  const int64_t rows = task.states.numbers.rows;
  const int64_t panels = (task.layer->logits->cols() + kPanel - 1) / kPanel;
  const auto log2e = hn::Set(d, 1.44269504088896340736f);
  std::fill_n(task.best, rows * task.k, Candidate{std::numeric_limits<int32_t>::max(), kNothing});
  for (int64_t g = task.first; g < task.last; ++g) {
    std::fill_n(shifts, rows, kNothing);
    std::fill_n(lanes, rows * kLanes, 0.0f);
    for (int64_t p = g * panels / task.groups; p < (g + 1) * panels / task.groups; ++p) {
      panel_logits(*task.layer, task.states, p, logits);
      for (int64_t r = 0; r < rows; ++r) {
        const float* row = logits + r * kPanel;
        Candidate* best = task.best + r * task.k;
        hn::Vec<FloatTag> x[kPanelVectors];
        for (int v = 0; v < kPanelVectors; ++v) x[v] = hn::Load(d, row + v * kLanes);
        auto largest = x[0];
        for (int v = 1; v < kPanelVectors; ++v) largest = hn::Max(largest, x[v]);
        const float limit = shifts[r] + kHeadroom;
        if (!hn::AllFalse(d,
                          hn::Gt(largest, hn::Set(d, std::min(limit, best[task.k - 1].log_probability))))) {
          insert_candidates(task, row, static_cast<int32_t>(p * kPanel), best);
          const float top = hn::GetLane(hn::MaxOfLanes(d, largest));
          if (top > limit) {
            const auto rescale = hn::Set(d, std::exp(shifts[r] - top));
            hn::Store(hn::Mul(rescale, hn::Load(d, lanes + r * kLanes)), d, lanes + r * kLanes);
            shifts[r] = top;
          }
        }
        const auto shift = hn::Set(d, shifts[r]);
        auto sum = hn::Load(d, lanes + r * kLanes);
        for (int v = 0; v < kPanelVectors; ++v) {
          sum = hn::Add(sum, exp2_bounded(d, hn::Mul(log2e, hn::Sub(x[v], shift))));
        }
        hn::Store(sum, d, lanes + r * kLanes);
      }
    }
    for (int64_t r = 0; r < rows; ++r) {
      task.shifts[g * task.stride + r] = shifts[r];
      task.sums[g * task.stride + r] = hn::GetLane(hn::SumOfLanes(d, hn::Load(d, lanes + r * kLanes)));
    }
  }
}

int64_t candidates_panel() {
  return kPanel;
}

}  // namespace mh::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mh {
HWY_EXPORT(search_panels);
HWY_EXPORT(candidates_panel);

namespace {
constexpr int64_t kGroups = 8;
}

void best_candidates(const OutputLayer& layer, ConstMatrixView states, int k,
                     std::span<const int32_t> suppressed, std::span<Candidate> out,
                     VocabularyScratch& scratch) {
  const int64_t panel = HWY_DYNAMIC_DISPATCH(candidates_panel)();
  const int64_t panels = (layer.logits->cols() + panel - 1) / panel;
  const int64_t rows = states.rows;
  MH_ASSERT(layer.logits->rows() == states.cols && k >= 1);
  MH_ASSERT(k + static_cast<int64_t>(suppressed.size()) <= layer.logits->cols());
  MH_ASSERT(static_cast<int64_t>(out.size()) == rows * k);
  // The vocabulary is summed in groups that depend on its size alone: a row's result is the same in any
  // batch. With few rows each group is a task of its own.
  const int64_t groups = std::min<int64_t>(panels, kGroups);
  const int64_t blocks = (rows + kRowsPerTask - 1) / kRowsPerTask;
  const int64_t parts = blocks >= kGroups ? 1 : groups;
  float* shifts = scratch.floats(2 * groups * rows + 2 * parts * rows * k);  // [groups, rows]
  float* sums = shifts + groups * rows;                                      // [groups, rows]
  auto* best = reinterpret_cast<Candidate*>(sums + groups * rows);           // [parts, rows, k]
  static_assert(sizeof(Candidate) == 2 * sizeof(float));

  const ProductRows read = product_rows(states, *layer.logits, scratch.rounded(), RoundedBy::kAllThreads);
  parallel_for(blocks * parts, [&](int64_t task) {
    const int64_t begin = task / parts * kRowsPerTask, part = task % parts;
    const int64_t end = std::min(rows, begin + kRowsPerTask);
    HWY_DYNAMIC_DISPATCH(search_panels)
    ({.layer = &layer,
      .states = read.rows_between(begin, end),
      .first = part * groups / parts,
      .last = (part + 1) * groups / parts,
      .groups = groups,
      .suppressed = suppressed,
      .k = k,
      .best = best + (part * rows + begin) * k,
      .shifts = shifts + begin,
      .sums = sums + begin,
      .stride = rows});
  });

  for (int64_t r = 0; r < rows; ++r) {
    float shift = shifts[r];
    for (int64_t g = 1; g < groups; ++g) shift = std::max(shift, shifts[g * rows + r]);
    double sum = 0;
    for (int64_t g = 0; g < groups; ++g) sum += sums[g * rows + r] * std::exp(shifts[g * rows + r] - shift);
    const auto lse = static_cast<float>(shift + std::log(sum));
    Candidate* to = out.data() + r * k;
    int next[kGroups] = {};  // of each part
    for (int i = 0; i < k; ++i) {
      int64_t from = -1;
      for (int64_t g = 0; g < parts; ++g) {
        if (next[g] == k) continue;
        const Candidate& candidate = best[(g * rows + r) * k + next[g]];
        if (from < 0 || candidate.log_probability > best[(from * rows + r) * k + next[from]].log_probability)
          from = g;
      }
      to[i] = best[(from * rows + r) * k + next[from]++];
      to[i].log_probability -= lse;
    }
  }
}

}  // namespace mh
#endif
