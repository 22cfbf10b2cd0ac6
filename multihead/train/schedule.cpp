#include "multihead/train/schedule.h"

#include <algorithm>
#include <cmath>

#include "multihead/base/error.h"

namespace mh {

double Schedule::learning_rate(int64_t update) const {
  MH_ASSERT(update >= 1);
  const double at = static_cast<double>(update);
  const double top = static_cast<double>(std::max<int64_t>(warmup, 1));
  return peak * std::min(at / top, std::sqrt(top / at));
}

}  // namespace mh
