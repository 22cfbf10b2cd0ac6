// The tape: every op computes its value at once and, when the tape records, leaves behind how its gradient
// flows back.
//
//   Tape tape(Tape::Mode::kRecord);
//   Var y = matmul(tape, x, w);                 // y.value() is there
//   tape.backward();                            // runs the notes in reverse; adds up parameters' gradients
//   tape.clear();                               // the memory is used again by the next step
//
// Values live in the tape's arena until clear(). The gradient of a Var lives from its first use in the
// backward pass until its op has passed it on; then its memory serves the next one, while it is still in the
// cache.
#pragma once

#include <cstdint>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

#include "multihead/base/matrix_view.h"
#include "multihead/kernels/gemm.h"
#include "multihead/tensor/arena.h"

namespace mh {

template <class T>
class BasicTape;

/// The value of an op and, during the backward pass, its gradient. A handle: copies name the same value.
template <class T>
class BasicVar {
 public:
  BasicVar() = default;

  BasicMatrixView<T> value() const { return node_->value; }
  int64_t rows() const { return node_->value.rows; }
  int64_t cols() const { return node_->value.cols; }
  explicit operator bool() const { return node_ != nullptr; }
  /// Whether gradients flow through it. False for constants and when nothing is recorded.
  bool wants_gradient() const { return node_->wants_gradient; }
  /// In a backward step: what has arrived. REQUIRES: has_gradient().
  BasicMatrixView<T> gradient() const { return node_->gradient; }
  bool has_gradient() const { return node_->written; }

 private:
  friend class BasicTape<T>;
  struct Node {
    BasicMatrixView<T> value;
    BasicMatrixView<T> gradient;
    Node* whole = nullptr;  // the node whose gradient's columns this one's are
    int64_t whole_column = 0;
    int64_t columns_written = 0;  // by the nodes that are columns of this one
    bool wants_gradient = false;
    bool written = false;  // the gradient holds something
  };
  explicit BasicVar(Node* node) : node_(node) {}
  Node* node_ = nullptr;
};

template <class T>
class BasicTape {
 public:
  using Var = BasicVar<T>;
  enum class Mode { kEvaluate, kRecord };

  explicit BasicTape(Mode mode = Mode::kEvaluate) : mode_(mode) {}
  BasicTape(const BasicTape&) = delete;
  BasicTape& operator=(const BasicTape&) = delete;

  bool recording() const { return mode_ == Mode::kRecord; }
  Arena& arena() { return arena_; }

  /// A value that somebody else owns. With kWants its gradient can be read after backward() by gradient_of().
  enum class Gradient { kNone, kWants };
  Var constant(BasicMatrixView<T> value, Gradient gradient = Gradient::kNone) {
    Var var = make_node(value);
    var.node_->wants_gradient = recording() && gradient == Gradient::kWants;
    return var;
  }
  /// Room for the result of an op.
  Var make(int64_t rows, int64_t cols) {
    Var var = make_node(arena_.template matrix<T>(rows, cols));
    var.node_->wants_gradient = recording();
    return var;
  }
  /// Columns [begin, end) of `whole` as a value of its own: its gradient fills columns of the whole's.
  /// REQUIRES: such values do not overlap, and together they cover the whole when any of them gets a
  /// gradient.
  Var columns(Var whole, int64_t begin, int64_t end) {
    Var var = make_node(whole.value().columns_between(begin, end));
    var.node_->wants_gradient = whole.wants_gradient();
    var.node_->whole = whole.node_;
    var.node_->whole_column = begin;
    return var;
  }

  /// Notes how the gradient of `output` flows back. Not called when nothing arrived at the output.
  /// `step` is a lambda of plain values (views, Vars, pointers).
  template <class Step>
  void record(Var output, Step step) {
    static_assert(std::is_trivially_destructible_v<Step>, "capture views and Vars, not owners");
    if (!output.wants_gradient()) return;
    void* memory = arena_.allocate(sizeof(Step));
    new (memory) Step(step);
    steps_.push_back({output.node_, memory, [](void* p) { (*static_cast<Step*>(p))(); }});
  }

  /// Where an op's backward step puts its share of the gradient of `input`: the memory, and whether to
  /// overwrite or to add. Ask once a step and input, then fill it completely. REQUIRES:
  /// input.wants_gradient().
  struct Target {
    BasicMatrixView<T> gradient;
    Write write;
  };
  Target gradient_of(Var input);

  /// Runs the steps in reverse. The last op's gradient is 1 (a loss), or given by seed().
  void backward();
  /// The gradient to start from, of any Var; copied.
  void seed(Var output, BasicMatrixView<const T> gradient);
  /// Forgets all values; memory is kept for the next step.
  void clear();
  /// Bytes held from the system.
  size_t capacity() const;

 private:
  using Node = typename Var::Node;
  struct Step {
    Node* output;
    void* data;
    void (*run)(void*);
  };

  Var make_node(BasicMatrixView<T> value) {
    Node* node = new (arena_.allocate(sizeof(Node))) Node;
    node->value = value;
    return Var(node);
  }
  BasicMatrixView<T> take(int64_t rows, int64_t cols);
  void give_back(BasicMatrixView<T> memory);

  Mode mode_;
  Arena arena_;
  std::vector<Step> steps_;
  // Memory of gradients that were passed on, by size.
  Arena gradients_;
  struct Free {
    int64_t size;
    T* data;
  };
  std::vector<Free> free_;
};

using Tape = BasicTape<float>;
using Var = BasicVar<float>;
extern template class BasicTape<float>;
extern template class BasicTape<double>;

}  // namespace mh
