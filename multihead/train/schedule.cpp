#include "multihead/train/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "multihead/base/error.h"

namespace mh {

double Schedule::learning_rate(int64_t update) const {
  if (update < 1) throw UsageError(fmt::format("updates count from 1, got {}", update));
  const double at = static_cast<double>(update);
  const double top = static_cast<double>(std::max<int64_t>(warmup, 1));
  if (decay == Decay::kInverseSquareRoot) return peak * std::min(at / top, std::sqrt(top / at));
  const double last = static_cast<double>(end);
  return peak * std::clamp(std::min(at / top, (last - at) / std::max(last - top, 1.0)), 0.0, 1.0);
}

}  // namespace mh
