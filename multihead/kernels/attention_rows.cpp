#include "multihead/kernels/attention_rows.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "multihead/kernels/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "multihead/kernels/attention_rows.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include <hwy/contrib/math/math-inl.h>  // once for each instruction set, after these

HWY_BEFORE_NAMESPACE();
namespace mh::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

namespace {

/// The next `count` numbers, or as many as a vector has; 0 behind the last.
template <class D>
HWY_INLINE hn::Vec<D> load_up_to(D d, const float* from, int64_t count) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  return count >= lanes ? hn::LoadU(d, from)
                        : hn::MaskedLoad(hn::FirstN(d, static_cast<size_t>(count)), d, from);
}

template <class D>
HWY_INLINE float total_of(D d, hn::Vec<D> v) {
  return hn::GetLane(hn::SumOfLanes(d, v));
}

/// a log a, and 0 where a is 0.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V a_log_a(D d, V a) {
  return hn::IfThenElseZero(hn::Gt(a, hn::Zero(d)), hn::Mul(a, hn::Log(d, a)));
}

int64_t keys_seen(const ConstMatrixView& weights, KeysSeen seen, int64_t i) {
  return seen == KeysSeen::kAll ? weights.cols : std::min(i + 1, weights.cols);
}

}  // namespace

void describe_each_row(const ConstMatrixView& weights, KeysSeen seen, AttentionRow* rows) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t i = 0; i < weights.rows; ++i) {
    const float* a = weights.row(i);
    const int64_t keys = keys_seen(weights, seen, i);
    auto entropy = hn::Zero(d), distance = hn::Zero(d), squares = hn::Zero(d);
    auto largest = hn::Set(d, -1.0f);
    const auto query = hn::Set(d, static_cast<float>(i));
    auto key = hn::Iota(d, 0.0f);
    for (int64_t j = 0; j < keys; j += lanes) {
      const auto weight = load_up_to(d, a + j, keys - j);
      entropy = hn::Sub(entropy, a_log_a(d, weight));
      distance = hn::MulAdd(weight, hn::Abs(hn::Sub(query, key)), distance);
      squares = hn::MulAdd(weight, weight, squares);
      largest = hn::Max(largest, weight);
      key = hn::Add(key, hn::Set(d, static_cast<float>(lanes)));
    }
    AttentionRow& row = rows[i];
    row.entropy = total_of(d, entropy);
    row.distance = total_of(d, distance);
    row.squares = total_of(d, squares);
    row.most = static_cast<int32_t>(std::find(a, a + keys, hn::GetLane(hn::MaxOfLanes(d, largest))) - a);
    if (row.most >= keys) row.most = 0;  // no keys
  }
}

double mixed_entropy_of_rows(const ConstMatrixView& a, const ConstMatrixView& b, KeysSeen seen) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto half = hn::Set(d, 0.5f);
  double total = 0;
  for (int64_t i = 0; i < a.rows; ++i) {
    const int64_t keys = keys_seen(a, seen, i);
    auto entropy = hn::Zero(d);
    for (int64_t j = 0; j < keys; j += lanes) {
      const auto both = hn::Add(load_up_to(d, a.row(i) + j, keys - j), load_up_to(d, b.row(i) + j, keys - j));
      entropy = hn::Sub(entropy, a_log_a(d, hn::Mul(half, both)));
    }
    total += static_cast<double>(total_of(d, entropy));
  }
  return total;
}

}  // namespace mh::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mh {

HWY_EXPORT(describe_each_row);
HWY_EXPORT(mixed_entropy_of_rows);

void describe_rows(ConstMatrixView weights, KeysSeen seen, AttentionRow* rows) {
  HWY_DYNAMIC_DISPATCH(describe_each_row)(weights, seen, rows);
}

double mixed_entropy(ConstMatrixView a, ConstMatrixView b, KeysSeen seen) {
  return HWY_DYNAMIC_DISPATCH(mixed_entropy_of_rows)(a, b, seen);
}

}  // namespace mh
#endif
