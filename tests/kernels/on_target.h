// Makes the kernels use one of this machine's instruction sets while the object lives.
#pragma once

#include <string>

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

}  // namespace mh
