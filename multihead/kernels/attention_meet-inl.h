// Part of the attention kernel's forward pass: queries of a head against a chunk of keys.
#if defined(MULTIHEAD_KERNELS_ATTENTION_MEET_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MULTIHEAD_KERNELS_ATTENTION_MEET_INL_H_
#undef MULTIHEAD_KERNELS_ATTENTION_MEET_INL_H_
#else
#define MULTIHEAD_KERNELS_ATTENTION_MEET_INL_H_
#endif

#include "multihead/kernels/attention_strips-inl.h"

HWY_BEFORE_NAMESPACE();
namespace mh {
namespace HWY_NAMESPACE {
namespace {  // NOLINT: one copy for each source and target

/// One chunk of keys and values.
struct Chunk {
  int64_t begin, end;
  Rows k, v;                        // first: key `begin`; without an index
  std::optional<bool> finite = {};  // whether v is, where it is known
};

/// Computes the scores of strips [first, first + strips) with the keys [from, to) of the chunk that each
/// strip sees.
HWY_NOINLINE inline void score_block(const AttentionInputs& in, const HeadOfPiece& h, const Chunk& chunk,
                                     int first, int strips, const int64_t* from, const int64_t* to,
                                     float* scores, float* top) {
  const int64_t size = int64_t{kBlock} * in.d_key;
  for_each_part(from, to, strips, chunk.begin, chunk.end,
                [&](int64_t j, int64_t n, int a, int count) HWY_ATTR {
                  if (count == 0) return;
                  score_strips(count, chunk.k.from(j), n, h.queries + (first + a) * size, in.d_key,
                               scores + a * kStripSize + j * kBlock, kStripSize, top + a * kBlock);
                });
}

/// Adds one chunk of keys to the running softmax of strips [first, first + strips), strips <= kGroups. ahead: what the
/// products prefetch, or null.
HWY_NOINLINE inline void meet(const AttentionInputs& in, const AttentionOutputs& out, const Piece& piece,
                              const HeadOfPiece& h, Chunk& chunk, int first, int strips, Running& running,
                              Ahead* ahead, ForwardMemory& memory) {
  int64_t from[kGroups], to[kGroups];
  HWY_ALIGN float top[kGroups * kBlock];
  bool some = false;
  for (int g = 0; g < strips; ++g) {
    const BlockMask& mask = piece.strip[first + g].mask;
    from[g] = std::max(chunk.begin, mask.begin);
    to[g] = std::max(from[g], std::min(chunk.end, mask.end));
    some = some || from[g] < to[g];
    std::fill_n(top + g * kBlock, kBlock, kMinusInfinity);
  }
  if (!some) return;
  float* scores = memory.strips.get(kGroups * kStripSize);
  score_block(in, h, chunk, first, strips, from, to, scores, top);
  for (int g = 0; g < strips; ++g) {
    const int64_t n = to[g] - from[g];
    if (n == 0) continue;
    const Strip& s = piece.strip[first + g];
    float* strip = scores + g * kStripSize + (from[g] - chunk.begin) * kBlock;
    float* most = running.most[first + g];
    float* total = running.total[first + g];
    float* sums = h.sums + (first + g) * kBlock * h.sums_stride;
    const bool cut = s.mask.cuts(from[g], to[g]);
    if (in.soft_cap) {  // not in the tiles: there it takes half as long again
      cap_numbers(strip, n * kBlock, cap_of(in));
      cap_numbers(top + g * kBlock, kBlock, cap_of(in));
    }
    if (h.bias) add_bias(*h.bias, s.first, s.n, from[g], to[g], strip);
    const uint16_t* allow = s.allow ? s.allow + (from[g] - s.mask.begin) : nullptr;
    if (cut && !allow) {
      uint16_t* bits = memory.allow.get(kChunk);
      for_cut_keys(s.mask, from[g], to[g], [&](int64_t begin, int64_t end) HWY_ATTR {
        allow_bits(in.mask, s.mask, s.row, s.n, begin, end, bits + (begin - from[g]));
      });
      allow = bits;
    }
    if (cut || h.bias) mask_strip(s, from[g], to[g], allow, strip, top + g * kBlock);
    const bool started = s.mask.begin < chunk.begin;
    if (started) {
      move_maximum(top + g * kBlock, most, total, s.n, sums, h.sums_stride, in.d_value);
    } else {
      std::copy_n(top + g * kBlock, kBlock, most);
    }
    exponentiate(strip, n, most, total);
    if (in.dropout.active()) {
      uint16_t* keep = memory.keep.get(kChunk + 16);
      keep_bits(in.dropout, in.dropout.sentences[piece.sequence], h.head, s.first, from[g], to[g], keep);
      drop(strip, n, keep);
    }
    HWY_ALIGN float factors[kBlock];
    Product values{strip, 0, chunk.v.from(from[g] - chunk.begin), n, sums, h.sums_stride, started, ahead};
    if (Piece::single(s)) {
      output_factors(total, h.output_scale, factors);
      values.factors = factors;
      values.out = h.output + (s.first - piece.first) * out.output.stride;
      values.out_stride = out.output.stride;
    }
    if (cut && !chunk.finite) chunk.finite = all_finite(chunk.v, chunk.end - chunk.begin, in.d_value);
    if (cut && !*chunk.finite) {
      product_of_allowed(values, in.mask, s, piece, from[g], in.d_value);
    } else {
      product<OverKeys>(values, s.n, in.d_value);
    }
  }
}

/// Runs after the last chunk: writes lse, and the output of strips that saw several chunks or no key.
HWY_INLINE void finish_strip(const AttentionInputs& in, const AttentionOutputs& out, const Piece& piece,
                             const Strip& s, const HeadOfPiece& h, const float* most, const float* total,
                             const float* sums) {
  const DF d;
  HWY_ALIGN float factors[kBlock];
  if (s.mask.begin == s.mask.end || !Piece::single(s)) {
    output_factors(total, h.output_scale, factors);
    const bool none = s.mask.begin == s.mask.end;
    for (int i = 0; i < s.n; ++i) {
      float* o = h.output + (s.first - piece.first + i) * out.output.stride;
      for (int64_t c = 0; c < in.d_value; ++c) o[c] = none ? 0 : sums[i * h.sums_stride + c] * factors[i];
    }
  }
  if (!h.lse) return;
  for (int w = 0; w < kVectors; ++w) {
    const auto m = hn::Load(d, most + w * kLanes);
    const auto safe = hn::IfThenZeroElse(hn::Eq(m, hn::Set(d, kMinusInfinity)), m);
    const auto lse = hn::Add(safe, log2_vector(hn::Load(d, total + w * kLanes)));
    hn::Store(hn::Mul(lse, hn::Set(d, kLn2)), d, factors + w * kLanes);
  }
  float* lse = h.lse + s.first * piece.lse_stride;
  for (int i = 0; i < s.n; ++i) lse[i * piece.lse_stride] = factors[i];
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace mh
HWY_AFTER_NAMESPACE();
#endif
