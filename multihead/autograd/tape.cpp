#include "multihead/autograd/tape.h"

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
      whole->columns_written += node->value.cols;
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
                         ? "tape: the gradient to start from has another shape than its value"
                         : "tape: no gradient flows through this value");
  }
  const Target target = gradient_of(output);
  for (int64_t i = 0; i < gradient.rows; ++i)
    std::copy_n(gradient.row(i), gradient.cols, target.gradient.row(i));
}

template <class T>
void BasicTape<T>::backward() {
  if (!recording()) throw UsageError("tape: nothing was recorded; make it with Tape::Mode::kRecord");
  if (steps_.empty()) return;  // nothing that gradients flow through was computed
  if (!steps_.back().output->written) {
    Node* loss = steps_.back().output;
    if (loss->value.size() != 1) {
      throw ShapeError("tape: the last value is no single number; give its gradient with seed()");
    }
    T one = 1;
    seed(Var(loss), {&one, 1, 1});
  }
  for (auto step = steps_.rbegin(); step != steps_.rend(); ++step) {
    if (!step->output->written) continue;
    MH_ASSERT(step->output->columns_written == 0 ||
              step->output->columns_written == step->output->value.cols);
    step->run(step->data);
    give_back(step->output->gradient);
    step->output->gradient = {};
    step->output->written = false;
  }
}

template <class T>
void BasicTape<T>::clear() {
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
