// Part of the attention kernel's backward pass: a block of queries against a chunk of keys.
#if defined(MULTIHEAD_KERNELS_ATTENTION_GRADIENT_MEET_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MULTIHEAD_KERNELS_ATTENTION_GRADIENT_MEET_INL_H_
#undef MULTIHEAD_KERNELS_ATTENTION_GRADIENT_MEET_INL_H_
#else
#define MULTIHEAD_KERNELS_ATTENTION_GRADIENT_MEET_INL_H_
#endif

#include "multihead/kernels/attention_gradient_strips-inl.h"

HWY_BEFORE_NAMESPACE();
namespace mh {
namespace HWY_NAMESPACE {
namespace {  // NOLINT: one copy for each source and target

/// Sums that skip masked pairs, for rows with NaN or infinity: a weight of 0 times such a number would not
/// be 0. over_keys: out[i] += sum over keys; else out[j] += sum over queries.
HWY_NOINLINE inline void product_of_allowed(const AttentionInputs& in, const Head& h, const Block& block,
                                            const float* strips, int64_t begin, int64_t keys, bool over_keys,
                                            Rows b, int64_t columns, const Target& to) {
  const int64_t rows = over_keys ? block.n : keys, sums = over_keys ? keys : block.n;
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) {
      float sum = 0;
      for (int64_t n = 0; n < sums; ++n) {
        const int64_t i = over_keys ? r : n, j = over_keys ? n : r;
        if (in.mask.allows(h.row + block.first + i, block.first + i, begin + j, h.queries, h.keys)) {
          sum = multiply_add(strips[i / kBlock * kStripSize + j * kBlock + i % kBlock], b.row(n)[c], sum);
        }
      }
      float& out = to.data[r * to.stride + c];
      out = to.add ? out + sum : sum;
    }
  }
}

/// Keys [begin, end); row 0 of k and v is key `begin`.
struct Chunk {
  int64_t begin, end;
  Rows k, v;
};

/// Computes the gradients that a block and a chunk give each other. ahead: what the products prefetch, or
/// null. Returns their part of dg, the gradient of the gate.
HWY_NOINLINE inline float meet(const AttentionInputs& in, const Head& h, Block& b, const Chunk& chunk,
                               const Rule& rule, const Target& d_q, const Target& d_k, const Target& d_v,
                               Ahead* ahead, GradientMemory& memory) {
  float* const p = memory.p.get(kStrips * kStripSize);
  float* const ds = memory.ds.get(kStrips * kStripSize);
  int64_t from[kStrips], to[kStrips];
  bool cut = false;
  for (int s = 0; s < b.strips; ++s) {
    from[s] = std::max(chunk.begin, b.mask[s].begin);
    to[s] = std::max(from[s], std::min(chunk.end, b.mask[s].end));
    cut = cut || (from[s] < to[s] && b.mask[s].cuts(from[s], to[s]));
  }
  for_each_part(from, to, b.strips, chunk.begin, chunk.end,
                [&](int64_t j, int64_t n, int a, int strips) HWY_ATTR {
                  if (strips == 0) return;
                  const int64_t at = a * kStripSize + j * kBlock;
                  weight_strips(strips, b, a, chunk.k.from(j), chunk.v.from(j), n, in.d_key, in.d_value, rule,
                                p + at, ds + at);
                });
  float gate_gradient = 0;
  for (int s = 0; s < b.strips && (cut || rule.raw); ++s) {
    const int64_t n = to[s] - from[s], first = b.first + s * kBlock;
    if (n == 0) continue;
    const int64_t at = s * kStripSize + (from[s] - chunk.begin) * kBlock;
    const bool strip_cut = b.mask[s].cuts(from[s], to[s]);
    uint16_t* allow = strip_cut ? memory.allow.get(kKeyChunk) : nullptr;
    if (rule.raw) {
      uint16_t* keep = nullptr;
      if (in.dropout.active()) {
        keep = memory.keep.get(kKeyChunk + 16);
        keep_bits(in.dropout, in.dropout.sentences[h.sequence], h.head, first, from[s], to[s], keep);
      }
      float* const slopes = rule.cap > 0 ? memory.slopes.get(kStripSize) : nullptr;
      if (slopes) slopes_of_strip(p + at, n, rule.cap, slopes);
      if (h.bias) add_bias(*h.bias, first, b.lanes(s), from[s], to[s], p + at);
      if (allow) allow_bits(in.mask, b.mask[s], h.row + first, b.lanes(s), from[s], to[s], allow);
      gate_gradient +=
          combine_strip(rule, b.lse + s * kBlock, rule.own_delta ? nullptr : b.delta + s * kBlock, b.lanes(s),
                        allow, keep, n, p + at, ds + at);
      if (h.bias) {
        add_bias_gradient(*h.bias, h.d_bias, b.first, first, b.lanes(s), from[s], to[s], ds + at);
        scale_strip(ds + at, n, in.scale);
      }
      if (slopes) multiply_strip(ds + at, n, slopes);
    } else if (allow) {
      for_cut_keys(b.mask[s], from[s], to[s], [&](int64_t begin, int64_t end) HWY_ATTR {
        allow_bits(in.mask, b.mask[s], h.row + first, b.lanes(s), begin, end, allow);
        const int64_t skip = (begin - from[s]) * kBlock;
        mask_strip(allow, end - begin, p + at + skip, ds + at + skip);
      });
    }
  }
  if (cut) {
    if (!b.finite_known) {
      b.finite = all_finite(b.q, b.n, in.d_key) && all_finite(b.d_output, b.n, in.d_value);
      b.finite_known = true;
    }
    const int64_t keys = chunk.end - chunk.begin;
    if (!b.finite || !all_finite(chunk.k, keys, in.d_key)) {
      product_of_allowed(in, h, b, ds, chunk.begin, keys, true, chunk.k, in.d_key, d_q);
      product_of_allowed(in, h, b, ds, chunk.begin, keys, false, b.q, in.d_key, d_k);
      product_of_allowed(in, h, b, p, chunk.begin, keys, false, b.d_output, in.d_value, d_v);
      return gate_gradient;
    }
  }
  for_each_part(
      from, to, b.strips, chunk.begin, chunk.end, [&](int64_t j, int64_t n, int a, int strips) HWY_ATTR {
        const Target to_k = d_k.from(j), to_v = d_v.from(j);
        if (strips == 0) {
          if (!d_k.add) fill_zero(to_k.data, to_k.stride, n, in.d_key);
          if (!d_v.add) fill_zero(to_v.data, to_v.stride, n, in.d_value);
          return;
        }
        const int64_t at = a * kStripSize + j * kBlock;
        const int64_t sums = std::min(b.n, int64_t{a + strips} * kBlock) - a * kBlock;
        product<OverQueries>(
            {p + at, kStripSize, b.d_output.from(a * kBlock), sums, to_v.data, to_v.stride, to_v.add}, n,
            in.d_value);
        product<OverQueries>(
            {ds + at, kStripSize, b.q.from(a * kBlock), sums, to_k.data, to_k.stride, to_k.add}, n, in.d_key);
      });
  for (int s = 0; s < b.strips; ++s) {
    const int64_t n = to[s] - from[s], j = from[s] - chunk.begin;
    const Target out = d_q.from(int64_t{s} * kBlock);
    if (n == 0) {
      if (!out.add) fill_zero(out.data, out.stride, b.lanes(s), in.d_key);
      continue;
    }
    product<OverKeys>(
        {ds + s * kStripSize + j * kBlock, 0, chunk.k.from(j), n, out.data, out.stride, out.add, ahead},
        b.lanes(s), in.d_key);
  }
  return gate_gradient;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace mh
HWY_AFTER_NAMESPACE();
#endif
