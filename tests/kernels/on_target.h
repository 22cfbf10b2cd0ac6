// Makes the kernels use one of this machine's instruction sets while the object lives.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "multihead/kernels/product_kernels.h"
#include "multihead/kernels/simd.h"

namespace mh {

/// While this lives, the kernels use this one of dispatch_targets().
class OnTarget {
 public:
  explicit OnTarget(const std::string& name) { use_dispatch_target(name); }
  ~OnTarget() { use_dispatch_target(before_); }
  OnTarget(const OnTarget&) = delete;
  OnTarget& operator=(const OnTarget&) = delete;

 private:
  const std::string before_ = dispatch_target();
};

/// An instruction set, and a kernel that runs on it.
using KernelOnTarget = std::pair<std::string, ProductKernel>;

/// All that multiply integers on this machine.
inline std::vector<KernelOnTarget> int8_kernels() {
  std::vector<KernelOnTarget> found;
  for (const std::string& target : dispatch_targets()) {
    const OnTarget on(target);
    for (const ProductKernel kernel : kernels_of(Precision::kFast, std::nullopt, processor_features()))
      found.emplace_back(target, kernel);
  }
  return found;
}

/// "AVX2_int8_avx2", the name of a test's parameter.
inline std::string kernel_label(const KernelOnTarget& kernel) {
  std::string label = kernel.first + "_" + name_of(kernel.second, kProductKernelNames);
  for (char& letter : label) {
    if (letter == '-') letter = '_';
  }
  return label;
}

}  // namespace mh
