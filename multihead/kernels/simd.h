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

/// Whether sums of products of bytes have an instruction here (AVX-512 VNNI; on AVX2 AVX-VNNI). Results are the same without.
bool has_byte_dots();

/// Lets has_byte_dots() be false whatever the processor has, or tells what it has again. For tests and measurements. REQUIRES: no
/// kernel is running.
void use_byte_dots(bool may);

/// Whether sums of products of pairs of bfloat16 have an instruction here (AVX-512 BF16).
bool has_bfloat16_dots();
/// Whether they take less time than float32: where they do not, near is same. AMD's do half of it; Intel's, on the processors
/// met so far, as much.
bool bfloat16_dots_are_fast();

}  // namespace mh
