#include "multihead/autograd/gradient_buffer.h"

#include <algorithm>

namespace mh {

GradientBuffer::GradientBuffer(std::span<const NamedParameter> parameters) {
  constexpr auto kFloats = static_cast<int64_t>(kCacheLine / sizeof(float));
  int64_t end = 0;
  for (const NamedParameter& named : parameters) {
    views_.push_back({.name = named.name, .parameter = named.parameter, .begin = end, .values = {}});
    end += (named.parameter->value.size() + kFloats - 1) / kFloats * kFloats;
  }
  memory_.resize(end);
  std::fill_n(memory_.data(), end, 0.0f);
  for (View& view : views_) {
    const Weight& value = view.parameter->value;
    view.values = MatrixView(memory_.data() + view.begin, value.rows(), value.cols());
    view.parameter->gradient.move_to(view.values);
  }
}

GradientBuffer::~GradientBuffer() {
  for (const View& view : views_) view.parameter->gradient.forget();
}

}  // namespace mh
