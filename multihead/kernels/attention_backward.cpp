#include <algorithm>
#include <cstddef>

#include "multihead/base/thread_pool.h"
#include "multihead/kernels/attention.h"
#include "multihead/kernels/attention_plan.h"
#include "multihead/kernels/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "multihead/kernels/attention_backward.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "multihead/kernels/attention_lanes-inl.h"
#include "multihead/kernels/attention_mask-inl.h"
#include "multihead/kernels/attention_product-inl.h"

// With P the weights, Z the dropout (0 or 1 / (1 - rate)), g the gate, and O' = (P Z) V the ungated output:
//   dV = g (P Z)^T dO     dP = Z (dO V^T)     delta_i = sum_j P_ij dP_ij = dO_i . O'_i
//   dS = g P (dP - delta)     dQ = scale dS K     dK = scale dS^T Q     dg = sum_i delta_i
// While all keys of a sequence fit in a chunk, delta is that sum over j; else it is dO . output / g, which is
// only used as g delta, so that no division happens. dg always adds P dP up: it is right for a gate of 0 too.
HWY_BEFORE_NAMESPACE();
namespace mh::HWY_NAMESPACE {
namespace {

constexpr int64_t kKeyChunk = 128;
constexpr int64_t kQueryChunk = 64;
constexpr int64_t kBlocks = kQueryChunk / kBlock;

struct Memory {
  detail::Scratch<float> queries, gradients, p, ds;
  detail::Scratch<uint16_t> allow, keep;
};

/// One head of one sequence; rows start with the sequence's first.
struct Head {
  Rows q, k, v, d_output, output;
  const float* lse;  // of the first query; heads apart
  int64_t queries, keys;
  int64_t row;  // of the first query among all
  int head;
  size_t sequence;
  float gate;
};

/// What a tile of keys needs of a block of queries.
struct BlockOfQueries {
  const float* queries;    // [d_key][16], scaled for powers of two
  const float* gradients;  // [d_value][16]
  const float* lse;        // [16], in units of log 2
  int d_key, d_value;
  float keep_scale;
};

/// P and dP of kKeys keys against a block, before anything is subtracted.
template <int kKeys>
HWY_INLINE void weights_tile(const BlockOfQueries& b, const float* const* keys, const float* const* values,
                             const uint16_t* allow, const uint16_t* keep, float* HWY_RESTRICT p_out,
                             float* HWY_RESTRICT dp_out, VF (&delta)[kVectors]) {
  const DF d;
  VF acc[kKeyTile][kVectors];
  dot_tile<kKeys>(keys, b.queries, b.d_key, acc);
  MH_UNROLL for (int j = 0; j < kKeys; ++j) {
    MH_UNROLL for (int w = 0; w < kVectors; ++w) {
      VF p = exp2_vector(hn::Sub(acc[j][w], hn::Load(d, b.lse + w * kLanes)));
      if (allow) p = hn::IfThenElseZero(block_mask(allow[j], w), p);
      hn::Store(p, d, p_out + j * kBlock + w * kLanes);
    }
  }
  dot_tile<kKeys>(values, b.gradients, b.d_value, acc);
  MH_UNROLL for (int j = 0; j < kKeys; ++j) {
    MH_UNROLL for (int w = 0; w < kVectors; ++w) {
      VF dp = acc[j][w];
      if (keep) dp = hn::IfThenElseZero(block_mask(keep[j], w), hn::Mul(dp, hn::Set(d, b.keep_scale)));
      if (allow) dp = hn::IfThenElseZero(block_mask(allow[j], w), dp);
      hn::Store(dp, d, dp_out + j * kBlock + w * kLanes);
      delta[w] = hn::MulAdd(hn::Load(d, p_out + j * kBlock + w * kLanes), dp, delta[w]);
    }
  }
}

template <int kKeys>
HWY_INLINE void weights_tile_of(int64_t n, const BlockOfQueries& b, const float* const* keys,
                                const float* const* values, const uint16_t* allow, const uint16_t* keep,
                                float* p, float* dp, VF (&delta)[kVectors]) {
  if constexpr (kKeys > 0) {
    if (n == kKeys) {
      weights_tile<kKeys>(b, keys, values, allow, keep, p, dp, delta);
    } else {
      weights_tile_of<kKeys - 1>(n, b, keys, values, allow, keep, p, dp, delta);
    }
  }
}

HWY_INLINE float dot(const float* a, const float* b, int size) {
  const DF d;
  auto sum = hn::Zero(d);
  int c = 0;
  for (; c + kLanes <= size; c += kLanes) sum = hn::MulAdd(hn::LoadU(d, a + c), hn::LoadU(d, b + c), sum);
  if (c < size) sum = hn::MulAdd(load_first(a + c, size - c), load_first(b + c, size - c), sum);
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

/// Sums that leave out what is masked, since 0 times a NaN or an infinity there would leak.
/// over_keys: out[i] += sum over keys; else out[j] += sum over queries.
void product_of_allowed(const float* strips, const uint16_t* allow, int64_t queries, int64_t keys,
                        bool over_keys, Rows b, int64_t columns, float* out, int64_t out_stride, bool add) {
  const int64_t rows = over_keys ? queries : keys, sums = over_keys ? keys : queries;
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) {
      float sum = 0;
      for (int64_t n = 0; n < sums; ++n) {
        const int64_t i = over_keys ? r : n, j = over_keys ? n : r;
        const int64_t at = i / kBlock * keys + j;
        if (allow[at] >> (i % kBlock) & 1) sum += strips[at * kBlock + i % kBlock] * b.row(n)[c];
      }
      float& to = out[r * out_stride + c];
      to = add ? to + sum : sum;
    }
  }
}

/// Gradients that a chunk of queries and keys adds to (or begins).
struct Target {
  float* data;
  int64_t stride;
  bool add;
};

/// Queries [i0, i0 + queries), keys [j0, j0 + keys) of one head. Returns the chunk's part of d_gate.
HWY_INLINE float backward_chunk(const AttentionInputs& in, const Head& h, int64_t i0, int64_t queries,
                                int64_t j0, int64_t keys, Target d_q, Target d_k, Target d_v,
                                Memory& memory) {
  const DF d;
  float* block = memory.queries.get(int64_t{kBlock} * in.d_key);
  float* gradient = memory.gradients.get(int64_t{kBlock} * in.d_value);
  float* p = memory.p.get(kKeyChunk * kQueryChunk);
  float* ds = memory.ds.get(kKeyChunk * kQueryChunk);
  uint16_t* allow_all = memory.allow.get(kKeyChunk * kBlocks);
  const bool drops = in.dropout.active();
  uint16_t* keep = drops ? memory.keep.get(kKeyChunk + 16) : nullptr;
  const float keep_scale = drops ? in.dropout.keep_scale() : 1.0f;
  const bool whole = h.keys <= kKeyChunk;  // delta comes from the chunk
  bool masked = false;
  float gate_gradient = 0;
  for (int64_t i = 0; i < queries; i += kBlock) {
    const int n = static_cast<int>(std::min<int64_t>(kBlock, queries - i));
    float* const p_strip = p + i * keys;
    float* const ds_strip = ds + i * keys;
    uint16_t* allow = allow_all + i / kBlock * keys;
    BlockMask range;
    block_range(in.mask, i0 + i, n, h.queries, h.keys, range);
    const bool cut = range.dense || j0 < range.full_begin || j0 + keys > range.full_end;
    if (cut) {
      masked = true;
      allow_bits(in.mask, range, h.row + i0 + i, n, j0, j0 + keys, allow);
    } else {
      std::fill_n(allow, keys, uint16_t{0xFFFF});
    }
    if (drops) {
      keep_bits(in.dropout, in.dropout.sentences[h.sequence], h.head, i0 + i, j0, j0 + keys, keep);
    }
    transpose_block(h.q.from(i0 + i), n, in.d_key, in.scale * kLog2e, block);
    transpose_block(h.d_output.from(i0 + i), n, in.d_value, 1.0f, gradient);
    HWY_ALIGN float lse[kBlock] = {};
    for (int r = 0; r < n; ++r) {
      const float value = h.lse[(i0 + i + r) * in.heads];
      lse[r] = value == kMinusInfinity ? 0 : value * kLog2e;
    }
    const BlockOfQueries b{block, gradient, lse, in.d_key, in.d_value, keep_scale};
    VF delta[kVectors];
    for (auto& v : delta) v = hn::Zero(d);
    const float* key[kKeyTile];
    const float* value[kKeyTile];
    int64_t j = 0;
    for (; j < keys; j += kKeyTile) {
      const int64_t tile = std::min<int64_t>(kKeyTile, keys - j);
      for (int64_t t = 0; t < tile; ++t) {
        key[t] = h.k.at<false>(j0 + j + t);
        value[t] = h.v.at<false>(j0 + j + t);
      }
      weights_tile_of<kKeyTile>(tile, b, key, value, cut ? allow + j : nullptr, drops ? keep + j : nullptr,
                                p_strip + j * kBlock, ds_strip + j * kBlock, delta);
    }
    for (const auto& v : delta) gate_gradient += hn::GetLane(hn::SumOfLanes(d, v));
    // dS = scale g P dP - P (scale g delta)
    const auto factor = hn::Set(d, in.scale * h.gate);
    HWY_ALIGN float subtracted[kBlock] = {};
    if (whole) {
      for (int w = 0; w < kVectors; ++w) hn::Store(hn::Mul(delta[w], factor), d, subtracted + w * kLanes);
    } else {
      for (int r = 0; r < n; ++r) {
        const int64_t row = i0 + i + r;
        subtracted[r] = in.scale * dot(h.d_output.at<false>(row), h.output.at<false>(row), in.d_value);
      }
    }
    const auto weight_factor = hn::Set(d, h.gate * keep_scale);
    for (j = 0; j < keys; ++j) {
      for (int w = 0; w < kVectors; ++w) {
        float* p_at = p_strip + j * kBlock + w * kLanes;
        float* ds_at = ds_strip + j * kBlock + w * kLanes;
        VF weight = hn::Load(d, p_at);
        const auto difference = hn::MulSub(hn::Load(d, ds_at), factor, hn::Load(d, subtracted + w * kLanes));
        VF gradient_of_score = hn::Mul(weight, difference);
        // A row's delta may be NaN by what that row sees; behind the mask nothing may be.
        if (cut) gradient_of_score = hn::IfThenElseZero(block_mask(allow[j], w), gradient_of_score);
        hn::Store(gradient_of_score, d, ds_at);
        weight = hn::Mul(weight, weight_factor);
        if (drops) weight = hn::IfThenElseZero(block_mask(keep[j], w), weight);
        hn::Store(weight, d, p_at);
      }
    }
  }
  const Rows k = h.k.from(j0), q = h.q.from(i0), d_output = h.d_output.from(i0);
  const auto finish = [](bool add) { return add ? Finish::kAdd : Finish::kWrite; };
  if (masked && !(all_finite(k, keys, in.d_key) && all_finite(q, queries, in.d_key) &&
                  all_finite(d_output, queries, in.d_value))) {
    product_of_allowed(ds, allow_all, queries, keys, true, k, in.d_key, d_q.data, d_q.stride, d_q.add);
    product_of_allowed(ds, allow_all, queries, keys, false, q, in.d_key, d_k.data, d_k.stride, d_k.add);
    product_of_allowed(p, allow_all, queries, keys, false, d_output, in.d_value, d_v.data, d_v.stride,
                       d_v.add);
    return gate_gradient;
  }
  for (int64_t i = 0; i < queries; i += kBlock) {
    product<OverKeys, false>(
        {ds + i * keys, 0, k, keys, d_q.data + i * d_q.stride, d_q.stride, finish(d_q.add)},
        std::min<int64_t>(kBlock, queries - i), in.d_key);
  }
  product<OverQueries, false>({ds, keys * kBlock, q, queries, d_k.data, d_k.stride, finish(d_k.add)}, keys,
                              in.d_key);
  product<OverQueries, false>({p, keys * kBlock, d_output, queries, d_v.data, d_v.stride, finish(d_v.add)},
                              keys, in.d_value);
  return gate_gradient;
}

void fill_zero(const MatrixView& view, int64_t row, int64_t rows, int64_t column, int64_t columns) {
  for (int64_t r = row; r < row + rows; ++r) std::fill_n(view.row(r) + column, columns, 0.0f);
}

}  // namespace

namespace {

/// Asks for the rows of the item after this one; see the forward pass.
HWY_INLINE void prefetch_next(const AttentionInputs& in, const AttentionGradients& g,
                              const detail::AttentionTask& task, size_t s, int h) {
  if (++h == task.head_end) {
    if (++s >= static_cast<size_t>(task.sequence_end)) return;
    h = task.head_begin;
  }
  const int64_t row = in.query_offsets[s], queries = in.query_offsets[s + 1] - row;
  const int64_t key = in.key_offsets[s], keys = in.key_offsets[s + 1] - key;
  if (queries > kQueryChunk || keys > kKeyChunk) return;
  const int64_t q = int64_t{h} * in.d_key, o = int64_t{h} * in.d_value;
  const int64_t k = int64_t{h} * in.key_heads / in.heads * in.d_key;
  const int64_t v = int64_t{h} * in.value_heads / in.heads * in.d_value;
  prefetch_rows({in.q.row(row) + q, in.q.stride}, queries, in.d_key);
  prefetch_rows({in.k.row(key) + k, in.k.stride}, keys, in.d_key);
  prefetch_rows({in.v.row(key) + v, in.v.stride}, keys, in.d_value);
  prefetch_rows({g.d_output.row(row) + o, g.d_output.stride}, queries, in.d_value);
  prefetch_rows({g.d_q.row(row) + q, g.d_q.stride}, queries, in.d_key);
  prefetch_rows({g.d_k.row(key) + k, g.d_k.stride}, keys, in.d_key);
  prefetch_rows({g.d_v.row(key) + v, g.d_v.stride}, keys, in.d_value);
}

}  // namespace

/// gates: [S, H], the part of each in d_gate.
void backward_task(const AttentionInputs& in, const AttentionGradients& g, const detail::AttentionTask& task,
                   float* gates) {
  thread_local Memory memory;
  for (auto s = static_cast<size_t>(task.sequence_begin); s < static_cast<size_t>(task.sequence_end); ++s) {
    Head h;
    h.row = in.query_offsets[s];
    h.queries = in.query_offsets[s + 1] - h.row;
    const int64_t first_key = in.key_offsets[s];
    h.keys = in.key_offsets[s + 1] - first_key;
    h.sequence = s;
    const bool single = 0 < h.queries && h.queries <= kQueryChunk && 0 < h.keys && h.keys <= kKeyChunk;
    for (int head = task.head_begin; head < task.head_end; ++head) {
      const int64_t key_head = int64_t{head} * in.key_heads / in.heads;
      const int64_t value_head = int64_t{head} * in.value_heads / in.heads;
      prefetch_next(in, g, task, s, head);
      const bool first_of_key = head % (in.heads / in.key_heads) == 0;
      const bool first_of_value = head % (in.heads / in.value_heads) == 0;
      const int64_t q_column = int64_t{head} * in.d_key, o_column = int64_t{head} * in.d_value;
      const int64_t k_column = key_head * in.d_key, v_column = value_head * in.d_value;
      if (!single) {
        fill_zero(g.d_q, h.row, h.queries, q_column, in.d_key);
        if (first_of_key) fill_zero(g.d_k, first_key, h.keys, k_column, in.d_key);
        if (first_of_value) fill_zero(g.d_v, first_key, h.keys, v_column, in.d_value);
      }
      h.head = head;
      h.gate = in.gate.empty() ? 1.0f : in.gate[static_cast<size_t>(head)];
      h.q = {in.q.row(h.row) + q_column, in.q.stride};
      h.k = {in.k.row(first_key) + k_column, in.k.stride};
      h.v = {in.v.row(first_key) + v_column, in.v.stride};
      h.d_output = {g.d_output.row(h.row) + o_column, g.d_output.stride};
      h.output = {g.output.row(h.row) + o_column, g.output.stride};
      h.lse = g.lse + h.row * in.heads + head;
      float gate_gradient = 0;
      for (int64_t j = 0; j < h.keys; j += kKeyChunk) {
        const int64_t keys = std::min(kKeyChunk, h.keys - j);
        for (int64_t i = 0; i < h.queries; i += kQueryChunk) {
          const int64_t queries = std::min(kQueryChunk, h.queries - i);
          if (!single && in.mask.kind() == Mask::Kind::kBand) {
            // A band moves to the right with i: its first row begins first, its last row ends last.
            const auto top = in.mask.visible(i, h.queries, h.keys);
            const auto bottom = in.mask.visible(i + queries - 1, h.queries, h.keys);
            const bool some = top.begin < top.end || bottom.begin < bottom.end;
            if (some && bottom.begin < bottom.end && bottom.end <= j) continue;
            if (some && top.begin < top.end && top.begin >= j + keys) continue;
          }
          gate_gradient += backward_chunk(
              in, h, i, queries, j, keys, {g.d_q.row(h.row + i) + q_column, g.d_q.stride, !single},
              {g.d_k.row(first_key + j) + k_column, g.d_k.stride, !single || !first_of_key},
              {g.d_v.row(first_key + j) + v_column, g.d_v.stride, !single || !first_of_value}, memory);
        }
      }
      if (gates) gates[s * static_cast<size_t>(in.heads) + static_cast<size_t>(head)] = gate_gradient;
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

template <class View>
void check_gradient(const char* name, const View& view, int64_t rows, int64_t cols) {
  if (view.rows != rows || view.cols != cols || (view.size() > 0 && view.data == nullptr)) {
    throw ShapeError(fmt::format("attention_backward: {} is [{},{}]{}, expected [{},{}]", name, view.rows,
                                 view.cols, view.data ? "" : " without data", rows, cols));
  }
}

}  // namespace

void attention_backward(const AttentionInputs& in, const AttentionGradients& g) {
  detail::check_attention(in, "attention_backward");
  if (!in.key_rows.empty()) {
    throw ShapeError(
        "attention_backward: key_rows is given; gradients exist for keys in their own order only");
  }
  const int64_t output_columns = int64_t{in.heads} * in.d_value;
  check_gradient("output", g.output, in.q.rows, output_columns);
  check_gradient("d_output", g.d_output, in.q.rows, output_columns);
  check_gradient("d_q", g.d_q, in.q.rows, in.q.cols);
  check_gradient("d_k", g.d_k, in.k.rows, in.k.cols);
  check_gradient("d_v", g.d_v, in.v.rows, in.v.cols);
  if (!g.lse && in.q.rows > 0)
    throw ShapeError("attention_backward: lse is missing; the forward pass writes it");
  const size_t sequences = in.query_offsets.size() - 1, heads = static_cast<size_t>(in.heads);
  thread_local std::vector<float> gates;
  if (g.d_gate) gates.assign(sequences * heads, 0.0f);
  const auto& tasks = detail::attention_tasks(in, true);
  float* parts = g.d_gate ? gates.data() : nullptr;  // taken here: `gates` is another one in another thread
  parallel_for(static_cast<int64_t>(tasks.size()), [&](int64_t task) {
    HWY_DYNAMIC_DISPATCH(backward_task)(in, g, tasks[static_cast<size_t>(task)], parts);
  });
  if (!g.d_gate) return;
  for (size_t h = 0; h < heads; ++h) {
    double sum = 0;
    for (size_t s = 0; s < sequences; ++s) sum += static_cast<double>(parts[s * heads + h]);
    g.d_gate[h] = static_cast<float>(sum);
  }
}

}  // namespace mh
#endif
