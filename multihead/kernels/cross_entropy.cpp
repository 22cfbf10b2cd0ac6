#include <algorithm>
#include <cmath>
#include <optional>

#include "multihead/base/thread_pool.h"
#include "multihead/kernels/gradient_product.h"
#include "multihead/kernels/product_rows.h"
#include "multihead/kernels/simd.h"
#include "multihead/kernels/vocabulary.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "multihead/kernels/cross_entropy.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "multihead/kernels/vocabulary-inl.h"

#ifndef MULTIHEAD_CROSS_ENTROPY_CHUNK
#define MULTIHEAD_CROSS_ENTROPY_CHUNK
namespace mh {
// Rows in work at a time: their logits for 8,000 words are 8 MiB, so that they wait in the last-level cache
// between the two passes, and the gradient of the embedding is read and written once for that many rows.
inline constexpr int64_t kChunk = 256;
// The panels are dealt to this many groups, each with its own sum of d_states, merged in order.
inline constexpr int64_t kGroups = 16;

/// One chunk of rows between its two passes. Statistics lie by panel: [panels, kChunk].
struct CrossEntropyChunk {
  const OutputLayer* layer;
  ProductRows read;        // [rows, d], the states as products read them
  const int32_t* targets;  // [rows]
  /// [panels, kChunk, panel]; after the first pass exp(logit - panel_max), or the logits where they are capped, since
  /// the cap's gradient needs them; null: not kept.
  float* logits;
  float* maxima;                      // [panels, kChunk]
  float* sums;                        // [panels, kChunk] of exp(logit - maximum)
  float* logit_sums;                  // [panels, kChunk] of logits, for the smoothed loss
  float* target_logits;               // [rows]
  float* factors;                     // [panels, kChunk] scale * exp(maximum - lse), between the passes
  const PackedMatrix* packed_states;  // [rows, d] as a right factor
  float on_target;                    // scale * (1 - e)
  float everywhere;                   // scale * e / V
};
}  // namespace mh
#endif

HWY_BEFORE_NAMESPACE();
namespace mh::HWY_NAMESPACE {

int64_t vocabulary_panel() {
  return kPanel;
}

// First pass over panel p: logits, their exponentials relative to the panel's own maximum, and row
// statistics.
void cross_entropy_first(const CrossEntropyChunk& chunk, int64_t p, float* scratch) {
  const int64_t column = p * kPanel;
  const int64_t width = std::min(kPanel, chunk.layer->logits->cols() - column);
  float* logits = chunk.logits != nullptr ? chunk.logits + p * kChunk * kPanel : scratch;
  panel_logits(*chunk.layer, chunk.read, p, logits);
  for (int64_t r = 0; r < chunk.read.numbers.rows; ++r) {
    float* row = logits + r * kPanel;
    const int64_t target = chunk.targets[r] - column;
    if (target >= 0 && target < width) chunk.target_logits[r] = row[target];
    float total = 0;
    if (chunk.logit_sums != nullptr) {
      if (width == kPanel) {
        const FloatTag d;
        auto sum = hn::Load(d, row);
        for (int v = 1; v < kPanelVectors; ++v) sum = hn::Add(sum, hn::Load(d, row + v * kLanes));
        total = hn::GetLane(hn::SumOfLanes(d, sum));
      } else {
        for (int64_t j = 0; j < width; ++j) total += row[j];
      }
      chunk.logit_sums[p * kChunk + r] = total;
    }
    const float maximum = panel_max(row);
    chunk.maxima[p * kChunk + r] = maximum;
    chunk.sums[p * kChunk + r] =
        chunk.layer->soft_cap ? panel_exp<false>(row, maximum) : panel_exp(row, maximum);
  }
}

namespace {

/// Capped logits of a row of a panel become gradients of what was capped. target: its column, if it is in the panel.
HWY_INLINE void capped_gradient(const CrossEntropyChunk& chunk, int64_t p, int64_t r,
                                std::optional<int64_t> target, float* row) {
  const FloatTag d;
  const auto inverse = hn::Set(d, 1 / *chunk.layer->soft_cap), one = hn::Set(d, 1.0f);
  const auto maximum = hn::Set(d, chunk.maxima[p * kChunk + r]);
  const auto factor = hn::Set(d, chunk.factors[p * kChunk + r]), everywhere = hn::Set(d, chunk.everywhere);
  const float share = target ? row[*target] / *chunk.layer->soft_cap : 0;
  for (int v = 0; v < kPanelVectors; ++v) {
    const auto logits = hn::Load(d, row + v * kLanes), shares = hn::Mul(logits, inverse);
    const auto gradient = hn::MulSub(exp_vector(d, hn::Sub(logits, maximum)), factor, everywhere);
    hn::Store(hn::Mul(gradient, hn::NegMulAdd(shares, shares, one)), d, row + v * kLanes);
  }
  if (target) row[*target] -= chunk.on_target * (1 - share * share);
}

}  // namespace

// Second pass over panel p: exponentials become gradients of the logits, which flow on to E and the states.
// d_states is the sum of this panel's group: [rows, d], or [d, rows] where the gradient's factor is not transposed.
void cross_entropy_second(const CrossEntropyChunk& chunk, int64_t p, const MatrixView& d_embedding,
                          const MatrixView& d_states, bool add) {
  const FloatTag d;
  const int64_t column = p * kPanel, rows = chunk.read.numbers.rows;
  const int64_t width = std::min(kPanel, chunk.layer->logits->cols() - column);
  float* gradient = chunk.logits + p * kChunk * kPanel;
  const auto everywhere = hn::Set(d, chunk.everywhere);
  for (int64_t r = 0; r < rows; ++r) {
    float* row = gradient + r * kPanel;
    const int64_t target = chunk.targets[r] - column;
    if (chunk.layer->soft_cap) {
      const bool here = target >= 0 && target < width;
      capped_gradient(chunk, p, r, here ? std::optional(target) : std::nullopt, row);
      continue;
    }
    const auto factor = hn::Set(d, chunk.factors[p * kChunk + r]);
    for (int v = 0; v < kPanelVectors; ++v) {
      hn::Store(hn::MulSub(hn::Load(d, row + v * kLanes), factor, everywhere), d, row + v * kLanes);
    }
    if (target >= 0 && target < width) row[target] -= chunk.on_target;
  }
  // d_embedding[panel] += gradient^T states
  const PackedMatrix& states = *chunk.packed_states;
  for (int64_t q = 0, c = 0; d_embedding.data != nullptr && c < states.cols(); ++q, c += kPanel) {
    multiply_panel({.data = gradient, .row_stride = 1, .k_stride = kPanel, .rows = width, .depth = rows},
                   states.panel_data(q), d_embedding.row(column) + c, d_embedding.stride,
                   std::min(kPanel, states.cols() - c), true);
  }
  // d_states += gradient E[panel]
  const auto& [embedding, transposed] = *chunk.layer->gradient;
  if (!transposed)
    return multiply_window(ConstMatrixView(gradient, rows, width, kPanel), embedding, column, d_states, add);
  for (int64_t q = 0, c = 0; c < embedding.cols(); ++q, c += kPanel) {
    multiply_panel({.data = gradient, .row_stride = kPanel, .k_stride = 1, .rows = rows, .depth = width},
                   embedding.panel_data(q) + column * kPanel, d_states.data + c, d_states.stride,
                   std::min(kPanel, embedding.cols() - c), add);
  }
}

}  // namespace mh::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mh {
HWY_EXPORT(vocabulary_panel);
HWY_EXPORT(cross_entropy_first);
HWY_EXPORT(cross_entropy_second);

namespace {

void check(const OutputLayer& layer, ConstMatrixView states, std::span<const int32_t> targets) {
  MH_ASSERT(layer.logits != nullptr && layer.logits->rows() == states.cols);
  MH_ASSERT(static_cast<int64_t>(targets.size()) == states.rows);
  const auto vocabulary = static_cast<int32_t>(layer.logits->cols());
  MH_ASSERT(std::all_of(targets.begin(), targets.end(), [&](int32_t t) { return t >= 0 && t < vocabulary; }));
}

// First passes over all panels of a chunk, then for each row lse [rows] = log of the sum of exponentials, and
// the factors that turn exp(logit - the panel's maximum) into scale * p.
void run_first(const CrossEntropyChunk& chunk, int64_t panels, float* scratch, int64_t panel, float scale,
               float* lse) {
  parallel_for(panels, [&](int64_t p, int worker) {
    float* own = scratch == nullptr ? nullptr : scratch + worker * kChunk * panel;
    HWY_DYNAMIC_DISPATCH(cross_entropy_first)(chunk, p, own);
  });
  constexpr int64_t kRows = 32;  // of a task
  parallel_for((chunk.read.numbers.rows + kRows - 1) / kRows, [&](int64_t task) {
    for (int64_t r = task * kRows; r < std::min(chunk.read.numbers.rows, (task + 1) * kRows); ++r) {
      float maximum = chunk.maxima[r];
      for (int64_t p = 1; p < panels; ++p) maximum = std::max(maximum, chunk.maxima[p * kChunk + r]);
      double sum = 0;
      for (int64_t p = 0; p < panels; ++p) {
        const int64_t at = p * kChunk + r;
        const float relative = std::exp(chunk.maxima[at] - maximum);
        if (chunk.factors != nullptr) chunk.factors[at] = relative;
        sum += chunk.sums[at] * relative;
      }
      if (chunk.factors != nullptr) {
        const auto factor = static_cast<float>(scale / sum);
        for (int64_t p = 0; p < panels; ++p) chunk.factors[p * kChunk + r] *= factor;
      }
      lse[r] = maximum + static_cast<float>(std::log(sum));
    }
  });
}

/// to = the sums of groups, so many numbers apart, added up in order. by_rows: they are [to.rows, to.cols], otherwise
/// transposed.
void add_groups(float* sums, int64_t groups, int64_t apart, bool by_rows, MatrixView to) {
  const int64_t lines = by_rows ? to.rows : to.cols, size = by_rows ? to.cols : to.rows;
  constexpr int64_t kLines = 16;  // of a task
  parallel_for((lines + kLines - 1) / kLines, [&](int64_t task) {
    for (int64_t line = task * kLines; line < std::min(lines, (task + 1) * kLines); ++line) {
      float* const sum = sums + line * size;
      for (int64_t g = 1; g < groups; ++g) {
        const float* const from = sum + g * apart;
        for (int64_t i = 0; i < size; ++i) sum[i] += from[i];
      }
      if (by_rows) {
        std::copy_n(sum, size, to.row(line));
      } else {
        for (int64_t i = 0; i < size; ++i) to(i, line) = sum[i];
      }
    }
  });
}

}  // namespace

CrossEntropySums cross_entropy(const OutputLayer& layer, const CrossEntropy& problem,
                               VocabularyScratch& scratch) {
  check(layer, problem.states, problem.targets);
  const int64_t panel = HWY_DYNAMIC_DISPATCH(vocabulary_panel)();
  const int64_t vocabulary = layer.logits->cols(), width = problem.states.cols;
  const int64_t panels = (vocabulary + panel - 1) / panel;
  const bool gradients = problem.d_states.data != nullptr;
  const float smoothing = problem.label_smoothing;

  const int64_t kept = gradients ? panels * kChunk * panel : thread_count() * kChunk * panel;
  const int64_t statistics = panels * kChunk;
  const int64_t partial = gradients ? kGroups * kChunk * width : 0;
  float* memory = scratch.floats(kept + 4 * statistics + 2 * kChunk + partial);
  float* maxima = memory + kept;
  float* target_logits = maxima + 4 * statistics;
  float* lse = target_logits + kChunk;
  float* partials = lse + kChunk;

  const ProductRows read =
      product_rows(problem.states, *layer.logits, scratch.rounded(), RoundedBy::kAllThreads);
  CrossEntropySums total;
  for (int64_t begin = 0; begin < problem.states.rows; begin += kChunk) {
    const int64_t rows = std::min(kChunk, problem.states.rows - begin);
    CrossEntropyChunk chunk{
        .layer = &layer,
        .read = read.rows_between(begin, begin + rows),
        .targets = problem.targets.data() + begin,
        .logits = gradients ? memory : nullptr,
        .maxima = maxima,
        .sums = maxima + statistics,
        .logit_sums = smoothing > 0 ? maxima + 2 * statistics : nullptr,
        .target_logits = target_logits,
        .factors = gradients ? maxima + 3 * statistics : nullptr,
        .packed_states = &scratch.packed(),
        .on_target = problem.scale * (1 - smoothing),
        .everywhere = problem.scale * smoothing / static_cast<float>(vocabulary),
    };
    run_first(chunk, panels, gradients ? nullptr : memory, panel, problem.scale, lse);
    for (int64_t r = 0; r < rows; ++r) {
      const double nll = static_cast<double>(lse[r]) - target_logits[r];
      double smoothed = nll;
      if (smoothing > 0) {
        double logits = 0;
        for (int64_t p = 0; p < panels; ++p) logits += chunk.logit_sums[p * kChunk + r];
        smoothed = (1 - smoothing) * nll + smoothing * (lse[r] - logits / static_cast<double>(vocabulary));
      }
      total.negative_log_likelihood += nll;
      total.smoothed += smoothed;
    }
    if (!gradients) continue;

    if (problem.d_embedding.data != nullptr) scratch.packed().pack(chunk.read.numbers);
    const int64_t groups = std::min(kGroups, panels);
    const bool by_rows = layer.gradient->transposed;
    parallel_for(groups, [&](int64_t g) {
      float* const of_group = partials + g * kChunk * width;
      const MatrixView sum = by_rows ? MatrixView(of_group, rows, width) : MatrixView(of_group, width, rows);
      const int64_t first = g * panels / groups, last = (g + 1) * panels / groups;
      for (int64_t p = first; p < last; ++p) {
        HWY_DYNAMIC_DISPATCH(cross_entropy_second)
        (chunk, p, problem.d_embedding, sum, p > first);
      }
    });
    add_groups(partials, groups, kChunk * width, by_rows, problem.d_states.rows_between(begin, begin + rows));
  }
  return total;
}

void log_probabilities(const OutputLayer& layer, ConstMatrixView states, std::span<const int32_t> targets,
                       std::span<float> log_probabilities, VocabularyScratch& scratch) {
  check(layer, states, targets);
  MH_ASSERT(log_probabilities.size() == targets.size());
  const int64_t panel = HWY_DYNAMIC_DISPATCH(vocabulary_panel)();
  const int64_t panels = (layer.logits->cols() + panel - 1) / panel;
  const int64_t kept = thread_count() * kChunk * panel, statistics = panels * kChunk;
  float* memory = scratch.floats(kept + 2 * statistics + kChunk);
  float lse[kChunk];
  const ProductRows read = product_rows(states, *layer.logits, scratch.rounded(), RoundedBy::kAllThreads);
  for (int64_t begin = 0; begin < states.rows; begin += kChunk) {
    const int64_t rows = std::min(kChunk, states.rows - begin);
    CrossEntropyChunk chunk{};
    chunk.layer = &layer;
    chunk.read = read.rows_between(begin, begin + rows);
    chunk.targets = targets.data() + begin;
    chunk.maxima = memory + kept;
    chunk.sums = chunk.maxima + statistics;
    chunk.target_logits = chunk.sums + statistics;
    run_first(chunk, panels, memory, panel, 1, lse);
    for (int64_t r = 0; r < rows; ++r) {
      log_probabilities[static_cast<size_t>(begin + r)] = chunk.target_logits[r] - lse[r];
    }
  }
}

}  // namespace mh
#endif
