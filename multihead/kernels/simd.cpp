#include "multihead/kernels/simd.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "multihead/kernels/simd.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace mh::HWY_NAMESPACE {
const char* target_name() {
  return hwy::TargetName(HWY_TARGET);
}
}  // namespace mh::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mh {
HWY_EXPORT(target_name);
std::string dispatch_target() {
  return HWY_DYNAMIC_DISPATCH(target_name)();
}
}  // namespace mh
#endif
