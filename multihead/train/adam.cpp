#include "multihead/train/adam.h"

#include <algorithm>
#include <cmath>

#include "multihead/base/thread_pool.h"
#include "multihead/batch/share_evenly.h"
#include "multihead/kernels/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "multihead/train/adam.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#ifndef MULTIHEAD_TRAIN_ADAM_STEP
#define MULTIHEAD_TRAIN_ADAM_STEP
namespace mh::detail {

// The numbers of one update that are the same for all elements.
struct AdamStep {
  float beta1, beta2;
  float scale;         // of the gradient
  float step;          // learning_rate / (1 - b1^t)
  float second_scale;  // 1 / (1 - b2^t)
  float epsilon;
  float decay;  // learning_rate * weight_decay
};

}  // namespace mh::detail
#endif

HWY_BEFORE_NAMESPACE();
namespace mh::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

double sum_of_squares(const float* x, int64_t size) {
  const hn::ScalableTag<double> d;
  const hn::Rebind<float, decltype(d)> half;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  auto sum0 = hn::Zero(d), sum1 = hn::Zero(d);
  int64_t i = 0;
  for (; i + 2 * lanes <= size; i += 2 * lanes) {
    const auto a = hn::PromoteTo(d, hn::LoadU(half, x + i));
    const auto b = hn::PromoteTo(d, hn::LoadU(half, x + i + lanes));
    sum0 = hn::MulAdd(a, a, sum0);
    sum1 = hn::MulAdd(b, b, sum1);
  }
  double sum = hn::GetLane(hn::SumOfLanes(d, hn::Add(sum0, sum1)));
  for (; i < size; ++i) sum += static_cast<double>(x[i]) * x[i];
  return sum;
}

template <class D, class V>
HWY_INLINE void adam_vector(D d, const detail::AdamStep& s, V g, V& w, V& m, V& v) {
  g = hn::Mul(g, hn::Set(d, s.scale));
  m = hn::MulAdd(hn::Set(d, 1 - s.beta1), g, hn::Mul(hn::Set(d, s.beta1), m));
  v = hn::MulAdd(hn::Mul(hn::Set(d, 1 - s.beta2), g), g, hn::Mul(hn::Set(d, s.beta2), v));
  const auto root = hn::Add(hn::Sqrt(hn::Mul(v, hn::Set(d, s.second_scale))), hn::Set(d, s.epsilon));
  w = hn::NegMulAdd(hn::Set(d, s.decay), w, w);
  w = hn::Sub(w, hn::Div(hn::Mul(hn::Set(d, s.step), m), root));
}

void adam_chunk(const detail::AdamStep& s, int64_t size, float* w, float* g, float* m, float* v) {
  const hn::ScalableTag<float> d;
  const hn::CappedTag<float, 1> one;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  const auto run = [&](auto tag, int64_t at) {
    auto wv = hn::LoadU(tag, w + at), mv = hn::LoadU(tag, m + at), vv = hn::LoadU(tag, v + at);
    adam_vector(tag, s, hn::LoadU(tag, g + at), wv, mv, vv);
    hn::StoreU(wv, tag, w + at);
    hn::StoreU(mv, tag, m + at);
    hn::StoreU(vv, tag, v + at);
    hn::StoreU(hn::Zero(tag), tag, g + at);
  };
  for (; i + lanes <= size; i += lanes) run(d, i);
  for (; i < size; ++i) run(one, i);
}

}  // namespace mh::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mh {
namespace {
HWY_EXPORT(sum_of_squares);
HWY_EXPORT(adam_chunk);

// Elements of a task: four arrays of them fit the second-level cache.
constexpr int64_t kChunk = 16384;
}  // namespace

Adam::Adam(std::vector<NamedParameter> parameters, const AdamOptions& options, const Share& share)
    : parameters_(std::move(parameters)), options_(options), owned_(parameters_.size(), 0) {
  std::vector<double> sizes;
  for (const NamedParameter& named : parameters_)
    sizes.push_back(static_cast<double>(named.parameter->value.size()));
  const auto shares = share_evenly(sizes, static_cast<size_t>(share.count));
  for (const int64_t p : shares[static_cast<size_t>(share.index)]) owned_[static_cast<size_t>(p)] = 1;
  moments_.resize(parameters_.size());
  hold_own();
  for (size_t p = 0; p < parameters_.size(); ++p) {
    const int64_t size = parameters_[p].parameter->value.size();
    for (int64_t begin = 0; begin < size; begin += kChunk)
      chunks_.push_back({p, begin, std::min(begin + kChunk, size)});
  }
  partial_.resize(chunks_.size());
}

void Adam::hold_all() {
  for (size_t p = 0; p < parameters_.size(); ++p) {
    const Weight& value = parameters_[p].parameter->value;
    if (moments_[p].first.size() != value.size())
      moments_[p] = {Tensor(value.rows(), value.cols()), Tensor(value.rows(), value.cols())};
  }
}

void Adam::hold_own() {
  for (size_t p = 0; p < parameters_.size(); ++p) {
    const Weight& value = parameters_[p].parameter->value;
    if (!owns(p)) {
      moments_[p] = {};
    } else if (moments_[p].first.size() != value.size()) {
      moments_[p] = {Tensor(value.rows(), value.cols()), Tensor(value.rows(), value.cols())};
    }
  }
}

double Adam::gradient_norm() {
  parallel_for(static_cast<int64_t>(chunks_.size()), [&](int64_t task) {
    const Chunk& chunk = chunks_[static_cast<size_t>(task)];
    const Gradient& gradient = parameters_[chunk.parameter].parameter->gradient;
    partial_[static_cast<size_t>(task)] =
        !gradient.exists() ? 0
                           : HWY_DYNAMIC_DISPATCH(sum_of_squares)(gradient.view().data + chunk.begin,
                                                                  chunk.end - chunk.begin);
  });
  double sum = 0;
  for (const double part : partial_) sum += part;
  return std::sqrt(sum);
}

void Adam::update(double learning_rate, double gradient_scale) {
  const double t = static_cast<double>(++updates_);
  detail::AdamStep step{};
  step.beta1 = static_cast<float>(options_.beta1);
  step.beta2 = static_cast<float>(options_.beta2);
  step.scale = static_cast<float>(gradient_scale);
  step.step = static_cast<float>(learning_rate / (1 - std::pow(options_.beta1, t)));
  step.second_scale = static_cast<float>(1 / (1 - std::pow(options_.beta2, t)));
  step.epsilon = static_cast<float>(options_.epsilon);
  parallel_for(static_cast<int64_t>(chunks_.size()), [&](int64_t task) {
    const Chunk& chunk = chunks_[static_cast<size_t>(task)];
    Parameter& parameter = *parameters_[chunk.parameter].parameter;
    if (!parameter.gradient.exists()) return;
    if (!owns(chunk.parameter)) {
      std::fill(parameter.gradient.view().data + chunk.begin, parameter.gradient.view().data + chunk.end,
                0.0f);
      return;
    }
    detail::AdamStep mine = step;
    const bool decays = parameter.value.rows() > 1;
    mine.decay = decays ? static_cast<float>(learning_rate * options_.weight_decay) : 0;
    Moments& moments = moments_[chunk.parameter];
    HWY_DYNAMIC_DISPATCH(adam_chunk)
    (mine, chunk.end - chunk.begin, parameter.value.data() + chunk.begin,
     parameter.gradient.view().data + chunk.begin, moments.first.data() + chunk.begin,
     moments.second.data() + chunk.begin);
  });
  for (const NamedParameter& named : parameters_) {
    if (named.parameter->gradient.exists()) named.parameter->changed();
  }
}

double clip_factor(double norm, double limit) {
  return limit > 0 && norm > limit ? limit / norm : 1;
}

}  // namespace mh
#endif
