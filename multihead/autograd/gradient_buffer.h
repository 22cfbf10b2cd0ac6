// The gradients of all parameters in one piece of memory, so that distributed training can sum them over
// processes with one call.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "multihead/autograd/parameter.h"
#include "multihead/base/aligned.h"

namespace mh {

/// While this object lives, the gradients of its parameters lie here; before and after, each parameter has
/// memory of its own. Results are the same.
class GradientBuffer {
 public:
  struct View {
    std::string name;
    const Parameter* parameter = nullptr;
    int64_t begin = 0;  // values are all()[begin, begin + values.size()); a multiple of 16
    MatrixView values;  // [rows, cols], as the parameter
  };

  /// At first all gradients are zero and reached() is false. REQUIRES: the parameters outlive this, keep
  /// their places and shapes, and are in one buffer at a time.
  explicit GradientBuffer(std::span<const NamedParameter> parameters);
  ~GradientBuffer();
  GradientBuffer(const GradientBuffer&) = delete;
  GradientBuffer& operator=(const GradientBuffer&) = delete;

  /// The whole memory, in the order of the parameters. Between two parameters are up to 15 unused zeros;
  /// whoever changes all() must leave them zero or ignore them.
  std::span<float> all() { return memory_.span(); }
  const std::vector<View>& views() const { return views_; }

  /// Whether a gradient has reached parameter views()[i], here or in another process. If none has, Adam
  /// leaves the parameter alone.
  bool reached(size_t i) const { return views_[i].parameter->gradient.exists(); }
  /// Call this for a parameter whose gradient came from another process.
  void mark_reached(size_t i) { views_[i].parameter->gradient_sum(); }

 private:
  std::vector<View> views_;
  AlignedBuffer<float> memory_;
};

}  // namespace mh
