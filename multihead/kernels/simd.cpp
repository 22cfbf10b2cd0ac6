#include "multihead/kernels/simd.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "multihead/base/error.h"

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
namespace {

/// Highway's bits of dispatch_targets(), as they were before any was disabled.
const std::vector<int64_t>& targets() {
  static const std::vector<int64_t> all = [] {
    auto found = hwy::SupportedAndGeneratedTargets();
    if (found.empty() || found.back() != HWY_STATIC_TARGET) found.push_back(HWY_STATIC_TARGET);
    return found;
  }();
  return all;
}

}  // namespace

HWY_EXPORT(target_name);
std::string dispatch_target() {
  return HWY_DYNAMIC_DISPATCH(target_name)();
}

std::vector<std::string> dispatch_targets() {
  std::vector<std::string> names;
  for (const int64_t target : targets()) names.emplace_back(hwy::TargetName(target));
  return names;
}

void use_dispatch_target(std::string_view name) {
  if (name == "best") return hwy::DisableTargets(0);
  const auto names = dispatch_targets();
  const auto at =
      name == "portable" ? names.end() - 1 : std::find(names.begin(), names.end(), std::string(name));
  if (at == names.end()) {
    throw UsageError(
        fmt::format("dispatch target {} is not one of this machine's: {}", name, fmt::join(names, ", ")));
  }
  // Highway's functions for tests would be undone by a test that uses them, too.
  hwy::DisableTargets(~targets()[static_cast<size_t>(at - names.begin())]);
}

}  // namespace mh
#endif
