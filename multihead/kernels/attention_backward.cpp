#include <algorithm>
#include <atomic>
#include <cstddef>
#include <functional>
#include <thread>

#include "multihead/base/stop.h"
#include "multihead/base/thread_pool.h"
#include "multihead/kernels/attention.h"
#include "multihead/kernels/attention_check.h"
#include "multihead/kernels/attention_plan.h"
#include "multihead/kernels/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "multihead/kernels/attention_backward.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "multihead/kernels/attention_gradient_ahead-inl.h"
#include "multihead/kernels/attention_gradient_bias-inl.h"
#include "multihead/kernels/attention_gradient_block-inl.h"
#include "multihead/kernels/attention_gradient_few-inl.h"
#include "multihead/kernels/attention_gradient_meet-inl.h"
#include "multihead/kernels/attention_lanes-inl.h"

// With P the weights, Z the dropout (0 or 1 / (1 - rate)), g the gate, and O' = (P Z) V the ungated output:
//   dV = g (P Z)^T dO     dP = Z (dO V^T)     delta_i = sum_j P_ij dP_ij = dO_i . O'_i
//   dS = g P (dP - delta)     dQ = scale dS K     dK = scale dS^T Q     dg = sum_i delta_i
// With a soft cap C that made scores S of scaled products, these get dS (1 - (S / C)^2).
// While all keys fit in a chunk, delta is that sum over j; else g delta = dO . output, so no division
// happens. dg adds P dP up, which is right for a gate of 0 too.
#ifndef MULTIHEAD_KERNELS_ATTENTION_BACKWARD_PARTS
#define MULTIHEAD_KERNELS_ATTENTION_BACKWARD_PARTS
namespace mh {

/// What tasks leave to be summed in the order of the parts; null: not wanted.
struct BackwardParts {
  float* gates;      // [parts, H]
  float* distances;  // [parts, H, columns]: of a slope, and of each column of by_distance
  int64_t columns;
  const int64_t* weight_offsets;  // [S], with bias.elements
};

/// Whose turn it is to add to a gradient of queries that several tasks share.
struct BackwardTurns {
  std::atomic<int32_t>* of_block;  // of one block of queries after the other; null: no other task adds to it
  const std::atomic<bool>* abandoned;  // a task failed: its turns will never end
};

}  // namespace mh
#endif

HWY_BEFORE_NAMESPACE();
namespace mh::HWY_NAMESPACE {
namespace {

/// Waits until `turn` holds `number`: parts of a gradient are added in the order of their keys, whichever
/// thread computes them. Tasks start in that order, so the one waited for is done or being done. False if a
/// task failed.
bool wait_for_turn(const std::atomic<int32_t>& turn, int32_t number, const std::atomic<bool>& abandoned) {
  for (int spin = 0; turn.load(std::memory_order_acquire) != number; ++spin) {
    if (abandoned.load(std::memory_order_relaxed)) return false;
    if (spin > 100) std::this_thread::yield();
  }
  return true;
}

/// Queries and keys that fit in one block and one chunk: nothing is copied, gradients are written in place.
HWY_INLINE float backward_small(const AttentionInputs& in, const Head& h, Block& block, const Rule& rule,
                                const MatrixView& d_by_query, const Target& d_q, const Target& d_k,
                                const Target& d_v, GradientMemory& memory) {
  prepare_block(in, h, 0, false, rule, block, memory);
  const Chunk chunk{0, h.keys, h.k, h.v};
  begin_by_query(h);
  const float gate_gradient = meet(in, h, block, chunk, rule, d_q, d_k, d_v, nullptr, memory);
  if (h.d_bias.by_query) finish_by_query(h, d_by_query, 0, h.queries, false);
  return gate_gradient;
}

/// Keys [begin, end) of a head against all its queries. d_k and d_v: sums over the heads of a group, of this
/// task alone, side by side; d_q: shared with the tasks of the other keys.
HWY_INLINE float backward_range(const AttentionInputs& in, const Head& h, int64_t begin, int64_t end,
                                int64_t range_size, const Rule& rule, const MatrixView& d_by_query,
                                const Target& d_q, const Target& d_k, const Target& d_v,
                                const BackwardTurns& turns, const Ahead& afterwards, GradientMemory& memory) {
  const int64_t k_stride = d_k.stride, v_stride = d_v.stride;
  float* k = memory.k.get((end - begin) * k_stride);
  float* v = memory.v.get((end - begin) * v_stride);
  copy_rows(h.k.from(begin), end - begin, in.d_key, k, k_stride);
  copy_rows(h.v.from(begin), end - begin, in.d_value, v, v_stride);
  float* sums = memory.d_q.get(kQueries * k_stride);
  float gate_gradient = 0;
  Block b;
  for (int64_t i = 0; i < h.queries; i += kQueries) {
    mask_block(in, h, b, i);
    const int64_t n = std::min(kQueries, h.queries - i);
    int64_t first = h.keys, last = 0;  // keys that any query of the block sees
    for (int64_t s = 0; s * kBlock < n; ++s) {
      if (b.mask[s].begin == b.mask[s].end) continue;
      first = std::min(first, b.mask[s].begin);
      last = std::max(last, b.mask[s].end);
    }
    const Target out = d_q.from(i);
    if (first >= last) {
      if (begin == 0) {
        fill_zero(out.data, out.stride, n, in.d_key);
        begin_by_query(h);
        if (h.d_bias.by_query) finish_by_query(h, d_by_query, i, n, false);
      }
      continue;
    }
    if (last <= begin || end <= first) continue;
    const int64_t following = std::min(kQueries, h.queries - i - kQueries);
    Ahead ahead;
    if (following <= 0) ahead = afterwards;
    ahead.add(h.q.from(i + kQueries), following, in.d_key);
    ahead.add(h.d_output.from(i + kQueries), following, in.d_value);
    ahead.add(h.output.from(i + kQueries), following, in.d_value);
    ahead.add(Rows{out.data, out.stride}, n, in.d_key);
    prepare_block(in, h, i, true, rule, b, memory);
    begin_by_query(h);
    bool started = false;
    for (int64_t j = begin; j < end; j += kKeyChunk) {
      const Chunk chunk{j,
                        std::min(end, j + kKeyChunk),
                        {k + (j - begin) * k_stride, k_stride},
                        {v + (j - begin) * v_stride, v_stride}};
      if (last <= chunk.begin || chunk.end <= first) continue;
      gate_gradient += meet(in, h, b, chunk, rule, {sums, k_stride, started}, d_k.from(j - begin),
                            d_v.from(j - begin), &ahead, memory);
      started = true;
    }
    const bool earlier = first < begin;  // a task before this one has a part of these gradients
    std::atomic<int32_t>* turn = turns.of_block ? turns.of_block + i / kQueries : nullptr;
    const auto number = static_cast<int32_t>(begin / range_size - first / range_size);
    if (turn && !wait_for_turn(*turn, number, *turns.abandoned))
      return gate_gradient;  // the caller will throw
    for (int64_t r = 0; r < n; ++r) {
      float* to = out.data + r * out.stride;
      const float* part = sums + r * k_stride;
      for (int64_t c = 0; c < in.d_key; ++c) to[c] = earlier ? to[c] + part[c] : part[c];
    }
    if (h.d_bias.by_query) finish_by_query(h, d_by_query, i, n, earlier);
    if (turn) turn->fetch_add(1, std::memory_order_release);
  }
  return gate_gradient;
}

}  // namespace

/// next_task: the one that this thread is likely to do then, or null.
/// turns: for each block of queries of each head of a sequence whose keys several tasks share.
void backward_task(const AttentionInputs& in, const AttentionGradients& g, const detail::BackwardTask& task,
                   const detail::BackwardTask* next_task, const BackwardParts& parts,
                   const BackwardTurns& turns) {
  thread_local GradientMemory memory;
  thread_local Block block;
  const bool drops = in.dropout.active();
  const float cap = cap_of(in);
  for (auto s = static_cast<size_t>(task.sequence_begin); s < static_cast<size_t>(task.sequence_end); ++s) {
    Head h;
    h.row = in.query_offsets[s];
    h.queries = in.query_offsets[s + 1] - h.row;
    const int64_t first_key = in.key_offsets[s];
    h.keys = in.key_offsets[s + 1] - first_key;
    h.sequence = s;
    const bool small = 0 < h.queries && h.queries <= kQueries && 0 < h.keys && h.keys <= kKeyChunk;
    const bool raw = drops || in.gate.data != nullptr || !in.bias.none() || parts.gates;
    const bool few = small && h.queries * h.keys <= kFewPairs && !raw;
    const int64_t begin = task.key_begin, end = std::min(task.key_end, h.keys);
    const int64_t blocks = (h.queries + kQueries - 1) / kQueries;
    const int64_t k_stride = copied_stride(in.d_key), v_stride = copied_stride(in.d_value);
    if (small && !few) mask_block(in, h, block, 0);
    const SequencePlaces at = places_of(in, g, s);
    const float* lse = detail::number_at(g.lse, g.lse_strides, in.heads, s, h.row, 0, 0);
    const int64_t lse_step = g.lse_strides.given() ? g.lse_strides.head : 1;
    h.lse_stride = g.lse_strides.given() ? g.lse_strides.token : in.heads;
    for (int head = task.head_begin; head < task.head_end; ++head) {
      const int64_t key_head = int64_t{head} * in.key_heads / in.heads;
      const int64_t value_head = int64_t{head} * in.value_heads / in.heads;
      const int of_key = in.heads / in.key_heads, of_value = in.heads / in.value_heads;
      h.head = head;
      h.gate = in.gate_of(s, head);
      h.q = {at.q.head(head), at.q.stride};
      h.k = {at.k.head(key_head), at.k.stride};
      h.v = {at.v.head(value_head), at.v.stride};
      h.d_output = {at.d_output.head(head), at.d_output.stride};
      h.output = {at.output.head(head), at.output.stride};
      h.lse = lse + head * lse_step;
      const float keep_scale = drops ? in.dropout.keep_scale() : 1.0f;
      const float score_scale = in.bias.none() ? in.scale : 1.0f;
      const Rule rule{
          score_scale * h.gate, score_scale, h.gate * keep_scale, keep_scale, small || raw, small, cap};
      HeadBias bias;
      if (!in.bias.none()) {
        begin_bias(in, g.d_bias, begin, end, parts.weight_offsets ? parts.weight_offsets[s] : 0, h, bias,
                   memory);
      }
      const Target d_q{at.d_q.head(head), at.d_q.stride, false};
      float* const k_gradient = at.d_k.head(key_head) + begin * at.d_k.stride;
      float* const v_gradient = at.d_v.head(value_head) + begin * at.d_v.stride;
      float gate_gradient = 0;
      if (small) {
        prefetch_next_small(in, g, task, s, head, at);
        const Target d_k{k_gradient, g.d_k.stride, head % of_key != 0},
            d_v{v_gradient, g.d_v.stride, head % of_value != 0};
        if (few) {
          if (in.soft_cap) {
            backward_few<true>(in, h, d_q, d_k, d_v);
          } else {
            backward_few<false>(in, h, d_q, d_k, d_v);
          }
        } else {
          gate_gradient = backward_small(in, h, block, rule, g.d_bias.by_query, d_q, d_k, d_v, memory);
        }
      } else {
        const int64_t keys = end - begin;
        float* const k_sums = memory.d_k.get(keys * k_stride);
        float* const v_sums = memory.d_v.get(keys * v_stride);
        if (head % of_key == 0) std::fill_n(k_sums, keys * k_stride, 0.0f);
        if (head % of_value == 0) std::fill_n(v_sums, keys * v_stride, 0.0f);
        Ahead ahead;  // what is wanted when this head is done
        ahead.add(Rows{k_gradient, g.d_k.stride}, keys, in.d_key);
        ahead.add(Rows{v_gradient, g.d_v.stride}, keys, in.d_value);
        add_next_item(in, g, task, s, head, next_task, ahead);
        gate_gradient = backward_range(
            in, h, begin, end, task.key_end - task.key_begin, rule, g.d_bias.by_query, d_q,
            {k_sums, k_stride, true}, {v_sums, v_stride, true},
            {task.turns < 0 ? nullptr : turns.of_block + task.turns + head * blocks, turns.abandoned}, ahead,
            memory);
        if ((head + 1) % of_key == 0)
          copy_rows(Rows{k_sums, k_stride}, keys, in.d_key, k_gradient, g.d_k.stride);
        if ((head + 1) % of_value == 0)
          copy_rows(Rows{v_sums, v_stride}, keys, in.d_value, v_gradient, g.d_v.stride);
      }
      const int64_t part = task.part + static_cast<int64_t>(s) - task.sequence_begin;
      if (parts.gates) parts.gates[part * in.heads + head] = gate_gradient;
      if (h.d_bias.by_distance)
        finish_distances(in, h, parts.distances + (part * in.heads + head) * parts.columns);
    }
  }
}

}  // namespace mh::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <fmt/format.h>

namespace mh {
HWY_EXPORT(backward_task);

namespace {

/// parts [plan.parts, heads] -> d_gate, of each sequence or of all.
void sum_gates(const detail::BackwardPlan& plan, const float* parts, int64_t heads,
               const MatrixView& d_gate) {
  thread_local std::vector<int64_t> row_of;  // grown once, so that a call allocates nothing
  thread_local std::vector<double> sums;
  row_of.assign(static_cast<size_t>(plan.parts), 0);
  for (const detail::BackwardTask& task : plan.tasks) {
    for (int64_t s = task.sequence_begin; s < task.sequence_end; ++s)
      row_of[static_cast<size_t>(task.part + s - task.sequence_begin)] = d_gate.rows == 1 ? 0 : s;
  }
  sums.assign(static_cast<size_t>(d_gate.rows * heads), 0.0);
  for (size_t part = 0; part < row_of.size(); ++part) {
    double* of_row = sums.data() + row_of[part] * heads;
    for (int64_t h = 0; h < heads; ++h)
      of_row[h] += static_cast<double>(parts[static_cast<int64_t>(part) * heads + h]);
  }
  for (int64_t i = 0; i < d_gate.rows; ++i) {
    for (int64_t h = 0; h < heads; ++h)
      d_gate(i, h) = static_cast<float>(sums[static_cast<size_t>(i * heads + h)]);
  }
}

}  // namespace

void attention_backward(const AttentionInputs& in, const AttentionGradients& g) {
  detail::check_attention(in, "attention_backward");
  if (!in.key_rows.empty()) {
    throw ShapeError(
        "attention_backward: key_rows is given; gradients exist for keys in their own order only");
  }
  if (in.halves())
    throw ShapeError("attention_backward: half_k is given; gradients exist for keys of float32 only");
  const auto check = [&](const char* name, const ConstHeadsView& view, int64_t rows, int heads, int size,
                         bool of_keys) {
    detail::check_result("attention_backward", name, in, view, rows, heads, size, of_keys);
  };
  check("output", g.output, in.q.rows, in.heads, in.d_value, false);
  check("d_output", g.d_output, in.q.rows, in.heads, in.d_value, false);
  check("d_q", g.d_q, in.q.rows, in.heads, in.d_key, false);
  check("d_k", g.d_k, in.k.rows, in.key_heads, in.d_key, true);
  check("d_v", g.d_v, in.v.rows, in.value_heads, in.d_value, true);
  detail::check_number_strides("attention_backward", "lse_strides", in, g.lse_strides);
  const auto expect_bias = [](bool wanted, bool given, const char* name) {
    if (wanted && !given) {
      throw ShapeError(
          fmt::format("attention_backward: d_bias.{} is wanted, but there is no bias.{}", name, name));
    }
  };
  expect_bias(g.d_bias.slopes, !in.bias.slopes.empty(), "slopes");
  expect_bias(g.d_bias.by_distance, !in.bias.by_distance.empty(), "by_distance");
  expect_bias(g.d_bias.elements, !in.bias.elements.empty(), "elements");
  expect_bias(g.d_bias.by_query.cols != 0, in.bias.by_query.cols != 0, "by_query");
  expect_bias(g.d_bias.by_key.cols != 0, in.bias.by_key.cols != 0, "by_key");
  if (g.d_bias.by_query.cols != 0) {
    detail::check_result("attention_backward", "d_bias.by_query", g.d_bias.by_query, in.q.rows,
                         in.bias.by_query.cols);
  }
  if (g.d_bias.by_key.cols != 0) {
    detail::check_result("attention_backward", "d_bias.by_key", g.d_bias.by_key, in.key_offsets.back(),
                         in.bias.by_key.cols);
  }
  const auto sequences = static_cast<int64_t>(in.query_offsets.size()) - 1;
  if (g.d_gate.data != nullptr)
    detail::check_gate("attention_backward", "d_gate", g.d_gate, sequences, in.heads);
  if (!g.lse && in.q.rows > 0)
    throw ShapeError("attention_backward: lse is missing; the forward pass writes it");
  const auto heads = static_cast<size_t>(in.heads);
  const detail::BackwardPlan& plan = detail::backward_plan(in);
  thread_local std::vector<float> gates;
  thread_local std::vector<std::atomic<int32_t>> waiting;
  const bool gated = g.d_gate.data != nullptr;
  if (gated) gates.assign(static_cast<size_t>(plan.parts) * heads, 0.0f);
  if (waiting.size() < static_cast<size_t>(plan.turns)) {
    waiting = std::vector<std::atomic<int32_t>>(static_cast<size_t>(plan.turns));
  }
  for (int64_t i = 0; i < plan.turns; ++i)
    waiting[static_cast<size_t>(i)].store(0, std::memory_order_relaxed);
  const AttentionBiasGradients& d_bias = g.d_bias;
  const auto columns = static_cast<size_t>(1 + (in.bias.by_distance.empty() ? 0 : in.bias.distance_columns));
  thread_local std::vector<float> distances;
  const bool by_distance = d_bias.slopes || d_bias.by_distance;
  if (by_distance) distances.assign(static_cast<size_t>(plan.parts) * heads * columns, 0.0f);
  // Pointers, since the vectors are thread_local: a worker that named them would get its own.
  const BackwardParts parts{gated ? gates.data() : nullptr, by_distance ? distances.data() : nullptr,
                            static_cast<int64_t>(columns),
                            in.bias.elements.empty() ? nullptr : detail::attention_weight_offsets(in)};
  std::atomic<bool> abandoned{false};
  const BackwardTurns turns{waiting.data(), &abandoned};
  const auto count = static_cast<int64_t>(plan.tasks.size()), threads = int64_t{thread_count()};
  throw_if_stopped();
  // Tasks wait for one another: all of them must begin, or hear that others will not.
  const detail::OuterStop outer;
  const auto stop = [&] {
    try {
      if (!outer.asked()) return false;
    } catch (...) {
      abandoned.store(true, std::memory_order_relaxed);
      throw;
    }
    abandoned.store(true, std::memory_order_relaxed);
    return true;
  };
  const StopScope whole(outer.is_there() ? std::function<bool()>(stop) : nullptr);
  parallel_for(count, [&](int64_t task) {
    const auto* this_task = plan.tasks.data() + task;
    const auto* next_task = task + threads < count ? this_task + threads : nullptr;
    try {
      HWY_DYNAMIC_DISPATCH(backward_task)(in, g, *this_task, next_task, parts, turns);
    } catch (...) {  // no memory
      abandoned.store(true, std::memory_order_relaxed);
      throw;
    }
  });
  const auto sum_of_parts = [&](const float* all, size_t stride) {
    double sum = 0;
    for (size_t part = 0; part < static_cast<size_t>(plan.parts); ++part) {
      sum += static_cast<double>(all[part * stride]);
    }
    return static_cast<float>(sum);
  };
  if (gated) sum_gates(plan, parts.gates, in.heads, g.d_gate);
  for (size_t h = 0; h < heads && by_distance; ++h) {
    const float* of_head = parts.distances + h * columns;
    if (d_bias.slopes) d_bias.slopes[h] = sum_of_parts(of_head, heads * columns);
    for (size_t c = 1; c < columns && d_bias.by_distance; ++c) {
      d_bias.by_distance[h * (columns - 1) + c - 1] = sum_of_parts(of_head + c, heads * columns);
    }
  }
}

}  // namespace mh
#endif
