// The gradients of all parameters in one piece of memory, so that somebody may sum them over processes with
// one call.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "multihead/autograd/parameter.h"
#include "multihead/base/aligned.h"

namespace mh {

/// While it lives, backward passes add to the parameters' gradients here; before and after, parameters keep
/// them in memory of their own. Nothing but where the numbers lie differs.
class GradientBuffer {
 public:
  struct View {
    std::string name;
    const Parameter* parameter = nullptr;
    int64_t begin = 0;  // all()[begin, begin + values.size()); a multiple of a cache line's floats
    MatrixView values;  // [rows, cols], as the parameter
  };

  /// All gradients are zero, and none exists. REQUIRES: the parameters outlive this, keep their places and
  /// shapes, and are in one buffer at a time.
  explicit GradientBuffer(std::span<const NamedParameter> parameters);
  ~GradientBuffer();
  GradientBuffer(const GradientBuffer&) = delete;
  GradientBuffer& operator=(const GradientBuffer&) = delete;

  /// Everything, in the order of the parameters. Between two views are up to 15 zeros, which belong to
  /// nobody; whoever changes all() must leave them zero or not look at them.
  std::span<float> all() { return memory_.span(); }
  const std::vector<View>& views() const { return views_; }

  /// Whether a gradient ever reached parameter views()[i], here or in another process. Where none did, Adam
  /// leaves the parameter alone.
  bool reached(size_t i) const { return views_[i].parameter->gradient.exists(); }
  /// To be called for what a sum over processes brought a gradient to.
  void mark_reached(size_t i) { views_[i].parameter->gradient_sum(); }

 private:
  std::vector<View> views_;
  AlignedBuffer<float> memory_;
};

}  // namespace mh
