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

/// What cpuid says of instructions that Highway's targets here do not have: leaf 7, subleafs 0 and 1; leaf 0 names the maker.
struct ProcessorDots {
  bool bytes_avx512 = false, bytes_avx2 = false, bfloat16 = false, is_amd = false;

  ProcessorDots() {
#if defined(__x86_64__)
    unsigned a = 0, b = 0, c = 0, d = 0;
    is_amd = __get_cpuid(0, &a, &b, &c, &d) != 0 && b == signature_AMD_ebx;
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return;
    bytes_avx512 = (c >> 11 & 1u) != 0;  // AVX512_VNNI
    if (a < 1 || __get_cpuid_count(7, 1, &a, &b, &c, &d) == 0) return;
    bytes_avx2 = (a >> 4 & 1u) != 0;  // AVX_VNNI
    bfloat16 = (a >> 5 & 1u) != 0;    // AVX512_BF16
#endif
  }
};

const ProcessorDots& processor_dots() {
  static const ProcessorDots has;
  return has;
}

}  // namespace

bool has_byte_dots() {
  const std::string_view target = HWY_DYNAMIC_DISPATCH(target_name)();
  return may_use_byte_dots.load(std::memory_order_relaxed) &&
         (target == "AVX3" ? processor_dots().bytes_avx512 : target == "AVX2" && processor_dots().bytes_avx2);
}

bool has_bfloat16_dots() {
  const std::string_view target = HWY_DYNAMIC_DISPATCH(target_name)();
  return target == "AVX3" && processor_dots().bfloat16;
}

bool bfloat16_dots_are_fast() {
  return processor_dots().is_amd && has_bfloat16_dots();
}

void use_byte_dots(bool may) {
  may_use_byte_dots.store(may, std::memory_order_relaxed);
}

}  // namespace mh
#endif
