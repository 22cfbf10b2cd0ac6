// The memory of what one training step computes: handed out piece after piece, taken back all at once.
// After the first steps the system is asked for no more memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "multihead/base/aligned.h"
#include "multihead/base/matrix_view.h"

namespace mh {

class Arena {
 public:
  /// Uninitialised memory, aligned to a cache line.
  void* allocate(size_t bytes);
  template <class T>
  BasicMatrixView<T> matrix(int64_t rows, int64_t cols) {
    return {static_cast<T*>(allocate(static_cast<size_t>(rows * cols) * sizeof(T))), rows, cols};
  }
  template <class T>
  std::span<T> array(int64_t size) {
    return {static_cast<T*>(allocate(static_cast<size_t>(size) * sizeof(T))), static_cast<size_t>(size)};
  }

  /// A point to go back to: rewind(mark) frees everything that was allocated after mark().
  struct Mark {
    size_t block = 0;
    size_t used = 0;
    size_t in_use = 0;
  };
  Mark mark() const { return {block_, used_, in_use_}; }
  void rewind(Mark mark) {
    block_ = mark.block;
    used_ = mark.used;
    in_use_ = mark.in_use;
  }
  void clear() { rewind({}); }
  /// How many bytes are handed out.
  size_t in_use() const { return in_use_; }
  /// How many bytes were taken from the system.
  size_t capacity() const;

 private:
  std::vector<AlignedBuffer<std::byte>> blocks_;
  size_t block_ = 0;  // the block in use
  size_t used_ = 0;   // bytes of it
  size_t in_use_ = 0;
};

}  // namespace mh
