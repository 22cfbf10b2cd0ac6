// The instruction sets that kernels are compiled for: AVX-512, AVX2, NEON and a portable one; more would
// cost build time. A kernel's source defines HWY_TARGET_INCLUDE and includes this header first.
#pragma once

// Bits 4 and 6 are AVX3_SPR and AVX3_ZEN4, which older versions of Highway do not name.
#define HWY_DISABLED_TARGETS                                                                         \
  (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL | (1LL << 4) | (1LL << 6) | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | \
   HWY_SVE2_128)

#include <string>
#include <string_view>
#include <vector>

namespace mh {

/// The name of the instruction set that the kernels use on this machine: "AVX3", "AVX2", "NEON", ...
std::string dispatch_target();

/// The instruction sets that this library was compiled for and this machine has, best first. The last one
/// runs on every machine.
std::vector<std::string> dispatch_targets();

/// Makes the kernels use this one of dispatch_targets(); "portable" is the last of them, "best" restores
/// the default. For tests and measurements of what another machine would run. Throws UsageError for any
/// other name. REQUIRES: no kernel is running, and no packed matrix from before is used after.
void use_dispatch_target(std::string_view name);

}  // namespace mh
