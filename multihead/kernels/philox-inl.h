// Philox4x32-10 (base/random.h) over a whole vector of counters. Include once for each instruction set, in
// a kernel's source.
#if defined(MULTIHEAD_KERNELS_PHILOX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MULTIHEAD_KERNELS_PHILOX_INL_H_
#undef MULTIHEAD_KERNELS_PHILOX_INL_H_
#else
#define MULTIHEAD_KERNELS_PHILOX_INL_H_
#endif

#include <hwy/highway.h>

#include "multihead/base/random.h"

HWY_BEFORE_NAMESPACE();
namespace mh {
namespace HWY_NAMESPACE {
namespace {  // NOLINT: one copy for each source and target

namespace hn = hwy::HWY_NAMESPACE;

using VU = hn::Vec<hn::ScalableTag<uint32_t>>;

/// Four words for each lane's counter; lane i holds what philox() gives for {counter[0][i], ...,
/// counter[3][i]}.
struct PhiloxVectors {
  HWY_INLINE PhiloxVectors() {}  // the one that gcc makes is compiled without NEON
  VU word[4];
};

/// Even and odd lanes are computed in the low halves of 64-bit lanes, since a product of 32-bit numbers has
/// 64 bits; the high halves are never read.
HWY_INLINE PhiloxVectors philox_vectors(const PhiloxVectors& counter, PhiloxKey key) {
  const hn::ScalableTag<uint32_t> du;
#if HWY_TARGET == HWY_SCALAR
  PhiloxCounter one;
  for (size_t w = 0; w < 4; ++w) one[w] = hn::GetLane(counter.word[w]);
  one = philox(one, key);
  PhiloxVectors result;
  for (size_t w = 0; w < 4; ++w) result.word[w] = hn::Set(du, one[w]);
  return result;
#else
  const hn::Repartition<uint64_t, decltype(du)> dw;
  const auto m0 = hn::Set(du, 0xD2511F53u), m1 = hn::Set(du, 0xCD9E8D57u);
  VU even[4], odd[4];
  for (int w = 0; w < 4; ++w) {
    even[w] = counter.word[w];
    odd[w] = hn::BitCast(du, hn::ShiftRight<32>(hn::BitCast(dw, counter.word[w])));
  }
  for (int round = 0; round < 10; ++round) {
    const auto k0 = hn::Set(du, key[0]), k1 = hn::Set(du, key[1]);
    for (VU* c : {even, odd}) {
      const auto a = hn::MulEven(c[0], m0), b = hn::MulEven(c[2], m1);
      c[0] = hn::Xor(hn::Xor(hn::BitCast(du, hn::ShiftRight<32>(b)), c[1]), k0);
      c[1] = hn::BitCast(du, b);
      c[2] = hn::Xor(hn::Xor(hn::BitCast(du, hn::ShiftRight<32>(a)), c[3]), k1);
      c[3] = hn::BitCast(du, a);
    }
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  PhiloxVectors result;
  for (int w = 0; w < 4; ++w) {
    const auto high = hn::BitCast(du, hn::ShiftLeft<32>(hn::BitCast(dw, odd[w])));
    result.word[w] = hn::OddEven(high, even[w]);
  }
  return result;
#endif
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace mh
HWY_AFTER_NAMESPACE();
#endif
