// Part of the attention kernel: weights and statistics. They are made from scores that are computed again,
// so asking for them does not change the output.
#if defined(MULTIHEAD_KERNELS_ATTENTION_STATISTICS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MULTIHEAD_KERNELS_ATTENTION_STATISTICS_INL_H_
#undef MULTIHEAD_KERNELS_ATTENTION_STATISTICS_INL_H_
#else
#define MULTIHEAD_KERNELS_ATTENTION_STATISTICS_INL_H_
#endif

#include "multihead/kernels/attention_strips-inl.h"

HWY_BEFORE_NAMESPACE();
namespace mh {
namespace HWY_NAMESPACE {
namespace {  // NOLINT: one copy for each source and target

/// Writes the weights of a strip.
template <class T>
void weights_of_strip(const AttentionInputs& in, const StoredHead<T>& h, const Strip& s, Rows q, int64_t keys,
                      float* weights, ForwardMemory& memory) {
  for (int i = 0; i < s.n; ++i) std::fill_n(weights + i * keys, keys, 0.0f);
  HWY_ALIGN float top[kBlock];
  HWY_ALIGN float total[kBlock] = {};
  HWY_ALIGN float factors[kBlock];
  std::fill_n(top, kBlock, kMinusInfinity);
  const int64_t begin = s.mask.begin, n = s.mask.end - begin;
  if (n == 0) return;
  float* block = memory.queries.get(int64_t{kBlock} * in.d_key);
  float* strip = memory.strips.get(std::max(kGroups * kStripSize, kBlock * (n + kRoom)));
  transpose_block(q, s.n, in.d_key, product_factor(in), block);
  const Rows k = plain_rows(h.k.from(begin), n, in.d_key, h.k.index != nullptr, memory.keys);
  score_strips(1, k, n, block, in.d_key, strip, 0, top);
  if (in.soft_cap) {
    cap_numbers(strip, n * kBlock, cap_of(in));
    cap_numbers(top, kBlock, cap_of(in));
  }
  if (h.bias) add_bias(*h.bias, s.first, s.n, begin, s.mask.end, strip);
  const bool cut = s.mask.cuts(begin, s.mask.end);
  uint16_t* allow = memory.allow.get(std::max(n, kChunk));
  if (cut) allow_bits(in.mask, s.mask, s.row, s.n, begin, s.mask.end, allow);
  if (cut || h.bias) mask_strip(s, begin, s.mask.end, allow, strip, top);
  exponentiate(strip, n, top, total);
  output_factors(total, 1.0f, factors);
  for (int64_t j = 0; j < n; ++j) {
    for (int i = 0; i < s.n; ++i) weights[i * keys + begin + j] = strip[j * kBlock + i] * factors[i];
  }
}

/// Writes the statistics of a strip, chunk by chunk.
template <class T>
void statistics_of_strip(const AttentionInputs& in, const AttentionOutputs& out, const Piece& piece,
                         const StoredHead<T>& h, const Strip& s, ForwardMemory& memory) {
  const int64_t queries = piece.queries, keys = piece.keys;
  const DF d;
  const AttentionStatistics& wanted = out.statistics;
  HWY_ALIGN float lse[kBlock] = {};
  HWY_ALIGN float highest[kBlock];
  std::fill_n(highest, kBlock, kMinusInfinity);
  double entropy[kBlock] = {}, position[kBlock] = {}, distance[kBlock] = {};
  const size_t distances = wanted.distances.size();
  const auto place = [&](int i) { return static_cast<size_t>((s.row + i) * in.heads + h.head); };
  for (int i = 0; i < s.n; ++i) {
    const float given = h.lse[(s.first + i) * piece.lse_stride];
    lse[i] = given == kMinusInfinity ? 0 : given * kLog2e;
    if (wanted.mass) std::fill_n(wanted.mass + place(i) * distances, distances, 0.0f);
  }
  float* block = memory.queries.get(int64_t{kBlock} * in.d_key);
  float* strip = memory.strips.get(kGroups * kStripSize);
  transpose_block(h.q.from(s.first - piece.first), s.n, in.d_key, product_factor(in), block);
  for (int64_t begin = s.mask.begin; begin < s.mask.end; begin += kChunk) {
    const int64_t end = std::min(s.mask.end, begin + kChunk);
    const Rows k = plain_rows(h.k.from(begin), end - begin, in.d_key, h.k.index != nullptr, memory.keys);
    HWY_ALIGN float top[kBlock];
    std::fill_n(top, kBlock, kMinusInfinity);
    score_strips(1, k, end - begin, block, in.d_key, strip, 0, top);
    if (in.soft_cap) cap_numbers(strip, (end - begin) * kBlock, cap_of(in));
    if (h.bias) add_bias(*h.bias, s.first, s.n, begin, end, strip);
    uint16_t* allow = memory.allow.get(kChunk);
    if (s.mask.cuts(begin, end)) allow_bits(in.mask, s.mask, s.row, s.n, begin, end, allow);
    mask_strip(s, begin, end, allow, strip, top);
    for (int i = 0; i < s.n; ++i) highest[i] = std::max(highest[i], top[i]);
    // Sums within a chunk are in float, sums over chunks in double.
    for (int w = 0; w < kVectors; ++w) {
      const auto base = hn::Load(d, lse + w * kLanes);
      auto information = hn::Zero(d), first = hn::Zero(d), total = hn::Zero(d), away = hn::Zero(d);
      HWY_ALIGN float own[kLanes];
      for (int i = 0; i < kLanes; ++i)
        own[i] = static_cast<float>(s.first + w * kLanes + i + keys - queries - begin);
      for (int64_t j = 0; j < end - begin; ++j) {
        float* at = strip + j * kBlock + w * kLanes;
        const auto surprise = hn::Sub(base, hn::Load(d, at));  // -log2 p
        const auto p = exp2_vector(hn::Neg(surprise));
        const auto key = hn::Set(d, static_cast<float>(j));
        information = hn::Add(information, hn::IfThenZeroElse(hn::Eq(p, hn::Zero(d)), hn::Mul(p, surprise)));
        first = hn::MulAdd(p, key, first);
        total = hn::Add(total, p);
        away = hn::MulAdd(p, hn::Abs(hn::Sub(key, hn::Load(d, own))), away);
        hn::Store(p, d, at);
      }
      HWY_ALIGN float parts[4][kLanes];
      hn::Store(information, d, parts[0]);
      hn::Store(first, d, parts[1]);
      hn::Store(total, d, parts[2]);
      hn::Store(away, d, parts[3]);
      for (int i = 0; i < kLanes; ++i) {
        entropy[w * kLanes + i] += static_cast<double>(parts[0][i]);
        position[w * kLanes + i] +=
            static_cast<double>(parts[1][i]) + static_cast<double>(begin) * static_cast<double>(parts[2][i]);
        distance[w * kLanes + i] += static_cast<double>(parts[3][i]);
      }
    }
    for (int i = 0; i < s.n && wanted.mass; ++i) {
      for (size_t m = 0; m < distances; ++m) {
        const int64_t j = s.first + i + keys - queries + wanted.distances[m];
        if (begin <= j && j < end) wanted.mass[place(i) * distances + m] = strip[(j - begin) * kBlock + i];
      }
    }
  }
  for (int i = 0; i < s.n; ++i) {
    if (wanted.highest) wanted.highest[place(i)] = highest[i] * kLn2;
    if (wanted.entropy) wanted.entropy[place(i)] = kLn2 * static_cast<float>(entropy[i]);
    if (wanted.expected_position) wanted.expected_position[place(i)] = static_cast<float>(position[i]);
    if (wanted.expected_distance) wanted.expected_distance[place(i)] = static_cast<float>(distance[i]);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace mh
HWY_AFTER_NAMESPACE();
#endif
