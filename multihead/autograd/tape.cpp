#include "multihead/autograd/tape.h"

#include <fmt/format.h>

#include <algorithm>

namespace mh {

template <class T>
BasicMatrixView<T> BasicTape<T>::take(int64_t rows, int64_t cols) {
  const int64_t size = rows * cols;
  // The one given back last is the one most likely still in the cache.
  const auto fits =
      std::find_if(free_.rbegin(), free_.rend(), [&](const Free& free) { return free.size == size; });
  if (fits == free_.rend()) return gradients_.template matrix<T>(rows, cols);
  T* data = fits->data;
  free_.erase(std::next(fits).base());
  return {data, rows, cols};
}

template <class T>
void BasicTape<T>::give_back(BasicMatrixView<T> memory) {
  if (memory.data != nullptr) free_.push_back({memory.size(), memory.data});
}

template <class T>
typename BasicTape<T>::Target BasicTape<T>::gradient_of(Var input) {
  Node* node = input.node_;
  MH_ASSERT(node->wants_gradient);
  if (node->gradient.data == nullptr) {
    if (Node* whole = node->whole) {
      if (whole->gradient.data == nullptr) {
        whole->gradient = take(whole->value.rows, whole->value.cols);
        whole->written = true;
      }
      node->gradient =
          whole->gradient.columns_between(node->whole_column, node->whole_column + node->value.cols);
    } else {
      node->gradient = take(node->value.rows, node->value.cols);
    }
  }
  const Write write = node->written ? Write::kAdd : Write::kOverwrite;
  node->written = true;
  return {node->gradient, write};
}

template <class T>
void BasicTape<T>::seed(Var output, BasicMatrixView<const T> gradient) {
  if (!output.wants_gradient() || gradient.rows != output.rows() || gradient.cols != output.cols()) {
    throw ShapeError(output.wants_gradient()
                         ? fmt::format("tape: the gradient to start from is [{},{}], and its value [{},{}]",
                                       gradient.rows, gradient.cols, output.rows(), output.cols())
                         : "tape: no gradient flows through this value");
  }
  const Target target = gradient_of(output);
  for (int64_t i = 0; i < gradient.rows; ++i) {
    for (int64_t j = 0; j < gradient.cols; ++j) {
      T& to = target.gradient(i, j);
      to = target.write == Write::kAdd ? to + gradient(i, j) : gradient(i, j);
    }
  }
}

template <class T>
typename BasicTape<T>::Watched BasicTape<T>::watch(Var x) {
  if (mode_ == Mode::kEvaluate)
    throw UsageError("tape: a value is watched that nothing records; make it with Tape::Mode::kRecordValues");
  const BasicMatrixView<T> sum = arena_.template matrix<T>(x.rows(), x.cols());
  std::fill_n(sum.data, sum.size(), T(0));
  const Var y = constant(x.value(), Gradient::kWants);
  record(y, [this, x, y, sum] {
    const Target dx = x.wants_gradient() ? gradient_of(x) : Target{};
    for (int64_t i = 0; i < sum.rows; ++i) {
      const T* from = y.gradient().row(i);
      for (int64_t j = 0; j < sum.cols; ++j) sum(i, j) += from[j];
      if (dx.gradient.data == nullptr) continue;
      T* to = dx.gradient.row(i);
      for (int64_t j = 0; j < sum.cols; ++j) to[j] = dx.write == Write::kAdd ? to[j] + from[j] : from[j];
    }
  });
  return {y, sum};
}

/// Clears the columns at which no gradient arrived, and lets go of those at which one did.
template <class T>
void BasicTape<T>::complete_parts(Node* whole) {
  int64_t columns = 0;
  bool arrived = false;
  for (const Node* part = whole->first_part; part != nullptr; part = part->next_part)
    arrived = arrived || part->written;
  if (!arrived) return;
  for (Node* part = whole->first_part; part != nullptr; part = part->next_part) {
    columns += part->value.cols;
    if (part->written) {
      part->gradient = {};
      part->written = false;
      continue;
    }
    for (int64_t i = 0; i < whole->gradient.rows; ++i)
      std::fill_n(whole->gradient.row(i) + part->whole_column, part->value.cols, T(0));
  }
  MH_ASSERT(columns == whole->value.cols);
}

template <class T>
void BasicTape<T>::backward() {
  if (mode_ == Mode::kEvaluate)
    throw UsageError("tape: nothing was recorded; make it with Tape::Mode::kRecord");
  if (steps_.empty()) return;  // nothing that gradients flow through was computed
  Node* last = steps_.back().output;
  if (last->written) return run_steps();
  if (last->value.size() != 1)
    throw ShapeError("tape: the last value is no single number; give its gradient with seed()");
  backward(Var(last));
}

template <class T>
void BasicTape<T>::backward(Var scalar) {
  const T one = 1;
  seed(scalar, {&one, 1, 1});
  run_steps();
}

template <class T>
void BasicTape<T>::run_steps() {
  for (auto step = steps_.rbegin(); step != steps_.rend(); ++step) {
    if (!step->output->written) continue;
    if (step->output->first_part != nullptr) complete_parts(step->output);
    step->run(step->data);
    give_back(step->output->gradient);
    step->output->gradient = {};
    step->output->written = false;
  }
}

template <class T>
void BasicTape<T>::clear() {
  recording_ = mode_ == Mode::kRecord;
  steps_.clear();
  arena_.clear();
  gradients_.clear();
  free_.clear();
}

template <class T>
size_t BasicTape<T>::capacity() const {
  return arena_.capacity() + gradients_.capacity();
}

template class BasicTape<float>;
template class BasicTape<double>;

}  // namespace mh
