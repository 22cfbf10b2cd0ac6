#include <algorithm>
#include <cmath>
#include <limits>

#include "multihead/base/thread_pool.h"
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
/// One task: a block of rows against panels [first, last). Results lie by row.
struct CandidatesTask {
  const OutputLayer* layer;
  ConstMatrixView states;  // [rows, d], rows <= kRowsPerTask
  int64_t first, last;
  std::span<const int32_t> suppressed;
  int k;
  Candidate* best;  // [rows, k] by logit, best first
  float* maxima;    // [rows]
  float* sums;      // [rows] of exp(logit - maximum)
};
}  // namespace mh
#endif

HWY_BEFORE_NAMESPACE();
namespace mh::HWY_NAMESPACE {

void search_panels(const CandidatesTask& task) {
  const FloatTag d;
  constexpr float kNothing = -std::numeric_limits<float>::infinity();
  HWY_ALIGN float logits[kRowsPerTask * kPanel];
  const int k = task.k;
  for (int64_t r = 0; r < task.states.rows; ++r) {
    task.maxima[r] = kNothing;
    task.sums[r] = 0;
    std::fill_n(task.best + r * k, k, Candidate{std::numeric_limits<int32_t>::max(), kNothing});
  }
  for (int64_t p = task.first; p < task.last; ++p) {
    const auto column = static_cast<int32_t>(p * kPanel);
    panel_logits(*task.layer, task.states, p, logits);
    for (int64_t r = 0; r < task.states.rows; ++r) {
      float* row = logits + r * kPanel;
      const float largest = panel_max(row);
      // Candidates first: the exponentials take the place of the logits.
      Candidate* best = task.best + r * k;
      if (largest > best[k - 1].log_probability) {
        for (int32_t j = 0; j < kPanel; ++j) {
          // Tokens come in rising order, so a later one with the same logit stays behind.
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
      if (largest > task.maxima[r]) {
        task.sums[r] *= std::exp(task.maxima[r] - largest);
        task.maxima[r] = largest;
      }
      task.sums[r] += panel_exp(row, task.maxima[r]);
    }
  }
  (void)d;
}

int64_t candidates_panel() { return kPanel; }

}  // namespace mh::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mh {
HWY_EXPORT(search_panels);
HWY_EXPORT(candidates_panel);

void best_candidates(const OutputLayer& layer, ConstMatrixView states, int k, std::span<const int32_t> suppressed,
                     std::span<Candidate> out, VocabularyScratch& scratch) {
  const int64_t panel = HWY_DYNAMIC_DISPATCH(candidates_panel)();
  const int64_t panels = (layer.logits->cols() + panel - 1) / panel;
  const int64_t rows = states.rows;
  MH_ASSERT(layer.logits->rows() == states.cols && k >= 1);
  MH_ASSERT(k + static_cast<int64_t>(suppressed.size()) <= layer.logits->cols());
  MH_ASSERT(static_cast<int64_t>(out.size()) == rows * k);
  const int64_t blocks = (rows + kRowsPerTask - 1) / kRowsPerTask;
  // A few rows alone would keep one thread busy: then the vocabulary is shared out too.
  const int64_t groups = std::min<int64_t>(panels, blocks >= 16 ? 1 : (16 + blocks - 1) / std::max<int64_t>(blocks, 1));
  const int64_t row_floats = 2 + 2 * k;
  float* memory = scratch.floats(groups * rows * row_floats);
  float* maxima = memory;                  // [groups, rows]
  float* sums = maxima + groups * rows;    // [groups, rows]
  auto* best = reinterpret_cast<Candidate*>(sums + groups * rows);  // [groups, rows, k]
  static_assert(sizeof(Candidate) == 2 * sizeof(float));

  parallel_for(blocks * groups, [&](int64_t task) {
    const int64_t begin = task / groups * kRowsPerTask, g = task % groups;
    const int64_t end = std::min(rows, begin + kRowsPerTask);
    HWY_DYNAMIC_DISPATCH(search_panels)
    ({.layer = &layer,
      .states = states.rows_between(begin, end),
      .first = g * panels / groups,
      .last = (g + 1) * panels / groups,
      .suppressed = suppressed,
      .k = k,
      .best = best + (g * rows + begin) * k,
      .maxima = maxima + g * rows + begin,
      .sums = sums + g * rows + begin});
  });

  for (int64_t r = 0; r < rows; ++r) {
    float maximum = maxima[r];
    for (int64_t g = 1; g < groups; ++g) maximum = std::max(maximum, maxima[g * rows + r]);
    double sum = 0;
    for (int64_t g = 0; g < groups; ++g) sum += sums[g * rows + r] * std::exp(maxima[g * rows + r] - maximum);
    const auto lse = static_cast<float>(maximum + std::log(sum));
    Candidate* to = out.data() + r * k;
    int next[16] = {};  // of each group; groups <= 16
    for (int i = 0; i < k; ++i) {
      int64_t from = -1;
      for (int64_t g = 0; g < groups; ++g) {
        if (next[g] == k) continue;
        const Candidate& candidate = best[(g * rows + r) * k + next[g]];
        if (from < 0 || candidate.log_probability > best[(from * rows + r) * k + next[from]].log_probability) from = g;
      }
      to[i] = best[(from * rows + r) * k + next[from]++];
      to[i].log_probability -= lse;
    }
  }
}

}  // namespace mh
#endif
