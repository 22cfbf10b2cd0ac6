// Tape: automatic differentiation in reverse mode. Every op computes its value at once; when the tape
// records, the op also notes a backward step, which computes the gradients of its inputs from the gradient
// of its output.
//
//   Tape tape(Tape::Mode::kRecord);
//   Var y = matmul(tape, x, w);                 // y.value() is there
//   tape.backward();                            // runs the steps in reverse; adds to the parameters' gradients
//   tape.clear();                               // the memory is used again by the next training step
//
// The gradient of a value inside of a model, whose parameters stay as they are:
//
//   Tape tape(Tape::Mode::kRecordValues);
//   const Tape::Watched x = tape.watch(...);    // go on with x.value
//   tape.backward();                            // x.gradient is d(last value) / d(x.value)
//
// All values are matrices. They live in the tape's arena until clear(), so after the first training steps
// nothing is allocated. The gradient of a Var lives from its first use in the backward pass until its op
// has passed it on; then its memory serves the next one, while it is still in the cache.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

#include "multihead/base/matrix_view.h"
#include "multihead/tensor/arena.h"

namespace mh {

template <class T>
class BasicTape;

/// The value of an op and, during the backward pass, its gradient. A Var is a handle: copies refer to the
/// same value.
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
  /// The gradient that has arrived; for use in a backward step. REQUIRES: has_gradient().
  BasicMatrixView<T> gradient() const { return node_->gradient; }
  bool has_gradient() const { return node_->written; }
  /// Whether both are the same value of the tape, not only equal numbers.
  bool operator==(const BasicVar&) const = default;

 private:
  friend class BasicTape<T>;
  struct Node {
    BasicMatrixView<T> value;
    BasicMatrixView<T> gradient;
    Node* whole = nullptr;  // set when this node is columns of another one
    int64_t whole_column = 0;
    Node* first_part = nullptr;  // the nodes that are columns of this one, as a list
    Node* next_part = nullptr;
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
  enum class Mode {
    kEvaluate,      // values only
    kRecord,        // gradients of parameters, and of values that are watched
    kRecordValues,  // gradients of watched values alone; records nothing before the first of them
  };

  /// What backward() follows.
  enum class Paths {
    kAll,  // the model as it is
    /// Its residual stream alone: what sublayers read, the scales that norms multiply by, the factors f(z) / z of activations f
    /// and the lengths that vectors are divided by count as constants. So held the model is affine in what each sublayer adds
    /// to the stream, and values times gradients are exact parts of the result (heads/contributions).
    kStream,
  };

  explicit BasicTape(Mode mode = Mode::kEvaluate, Paths paths = Paths::kAll)
      : mode_(mode), stream_alone_(paths == Paths::kStream), recording_(mode == Mode::kRecord) {}
  BasicTape(const BasicTape&) = delete;
  BasicTape& operator=(const BasicTape&) = delete;

  Mode mode() const { return mode_; }
  /// Whether backward steps are noted, so that values must stay until backward().
  bool recording() const { return recording_; }
  /// Whether it follows Paths::kStream.
  bool stream_alone() const { return stream_alone_; }
  /// x, through which no gradient flows where the stream alone is followed.
  Var read_from_stream(Var x) { return stream_alone_ ? constant(x.value()) : x; }
  /// Whether backward steps add to the gradients of parameters.
  bool trains() const { return mode_ == Mode::kRecord; }
  Arena& arena() { return arena_; }

  /// A value that somebody else owns. With kWants, gradient_of() gives its gradient after backward().
  enum class Gradient { kNone, kWants };
  Var constant(BasicMatrixView<T> value, Gradient gradient = Gradient::kNone) {
    Var var = make_node(value);
    var.node_->wants_gradient = mode_ != Mode::kEvaluate && gradient == Gradient::kWants;
    recording_ = recording_ || var.node_->wants_gradient;
    return var;
  }
  /// Allocates the value of an op. Gradients flow through it where parameters train or one of the op's inputs
  /// wants one; an input that is not there counts for nothing.
  template <class Inputs = std::initializer_list<Var>>
  Var make(int64_t rows, int64_t cols, const Inputs& inputs) {
    Var var = make_node(arena_.template matrix<T>(rows, cols));
    bool& wants = var.node_->wants_gradient;
    wants = trains();
    if (mode_ == Mode::kRecordValues) {
      for (const Var& input : inputs) wants = wants || (input && input.wants_gradient());
    }
    return var;
  }
  /// The same value, whose gradient is asked for.
  struct Watched {
    Var value;                    // to go on with
    BasicMatrixView<T> gradient;  // the sum over backward passes until clear(); 0 where none arrived
  };
  /// Throws UsageError unless the tape has a mode that records.
  Watched watch(Var x);
  /// Columns [begin, end) of `whole` as a value; its gradient becomes those columns of the gradient of
  /// `whole`, and 0 where none arrives. REQUIRES: such values do not overlap, and together they cover
  /// `whole`, which has no other use.
  Var columns(Var whole, int64_t begin, int64_t end) {
    Var var = make_node(whole.value().columns_between(begin, end));
    var.node_->wants_gradient = whole.wants_gradient();
    var.node_->whole = whole.node_;
    var.node_->whole_column = begin;
    var.node_->next_part = std::exchange(whole.node_->first_part, var.node_);
    return var;
  }

  /// Notes the backward step of the op that made `output`. It is skipped when no gradient arrives at
  /// `output`. `step` is a lambda that captures plain values only (views, Vars, pointers).
  template <class Step>
  void record(Var output, Step step) {
    static_assert(std::is_trivially_destructible_v<Step>, "capture views and Vars, not owners");
    if (!output.wants_gradient()) return;
    void* memory = arena_.allocate(sizeof(Step));
    new (memory) Step(step);
    steps_.push_back({output.node_, memory, [](void* p) { (*static_cast<Step*>(p))(); }});
  }

  /// Where a backward step puts its share of the gradient of `input`: the memory, and whether to overwrite
  /// it or to add. Call once for each step and input, then fill all of it. REQUIRES:
  /// input.wants_gradient().
  struct Target {
    BasicMatrixView<T> gradient;
    Write write;
  };
  Target gradient_of(Var input);

  /// Runs the steps in reverse. It starts from gradient 1 of the last op, a loss, unless seed() gave
  /// another start. Throws ShapeError where that is no single number.
  void backward();
  /// Runs them from gradient 1 of `scalar` [1, 1], and from what seed() gave. Throws ShapeError where it is no
  /// single number, or no gradient flows through it.
  void backward(Var scalar);
  /// Makes backward() start from this gradient of `output`, which may be any Var. The gradient is copied;
  /// several of one value add up.
  void seed(Var output, BasicMatrixView<const T> gradient);
  /// Forgets all values; the memory is kept for the next training step.
  void clear();
  /// How many bytes were taken from the system.
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
  void complete_parts(Node* whole);
  void run_steps();

  Mode mode_;
  bool stream_alone_;
  bool recording_;
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
