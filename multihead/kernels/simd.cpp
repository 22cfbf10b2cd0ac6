#include "multihead/kernels/simd.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

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

namespace {

std::atomic<bool> may_use_byte_dots{true};

/// Bit `bit` of a register of cpuid's leaf 7: ecx (3rd) of subleaf 0, eax (1st) of subleaf 1.
struct ByteDots {
  bool avx512 = false, avx2 = false;

  ByteDots() {
#if defined(__x86_64__)
    unsigned a = 0, b = 0, c = 0, d = 0;
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return;
    avx512 = (c >> 11 & 1u) != 0;                                                           // AVX512_VNNI
    if (a >= 1 && __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0) avx2 = (a >> 4 & 1u) != 0;  // AVX_VNNI
#endif
  }
};

}  // namespace

bool has_byte_dots() {
  static const ByteDots has;
  const std::string_view target = HWY_DYNAMIC_DISPATCH(target_name)();
  return may_use_byte_dots.load(std::memory_order_relaxed) &&
         (target == "AVX3" ? has.avx512 : target == "AVX2" && has.avx2);
}

void use_byte_dots(bool may) {
  may_use_byte_dots.store(may, std::memory_order_relaxed);
}

}  // namespace mh
#endif
