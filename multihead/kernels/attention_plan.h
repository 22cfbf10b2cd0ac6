// Inside of the attention kernel: is the description possible, and how is it cut into tasks?
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include "multihead/kernels/attention.h"

namespace mh::detail {

/// Query rows [query_begin, query_end) of heads [head_begin, head_end) of sequences [sequence_begin,
/// sequence_end). (cut off at each sequence's own number; only a task of one long sequence has fewer than
/// all).
struct AttentionTask {
  int32_t sequence_begin, sequence_end;
  int32_t head_begin, head_end;
  int64_t query_begin, query_end;
};

/// Throws ShapeError or UsageError naming the field.
void check_attention(const AttentionInputs& inputs, const char* caller);

/// Tasks of about equal work, cut by the shape alone. Heads that share a key or value head stay together when
/// `whole_groups` (they add to the same gradient), and so do the queries of a head.
/// The tasks live until this thread's next call.
const std::vector<AttentionTask>& attention_tasks(const AttentionInputs& inputs, bool whole_groups);

/// Memory that grows and is kept, aligned for any vector.
template <class T>
class Scratch {
 public:
  T* get(int64_t size) {
    if (size > size_) {
      memory_.reset();
      const auto bytes = (static_cast<size_t>(size) * sizeof(T) + 63) / 64 * 64;
      memory_.reset(static_cast<T*>(std::aligned_alloc(64, bytes)));
      if (!memory_) throw std::bad_alloc();
      size_ = size;
    }
    return memory_.get();
  }

 private:
  struct Free {
    void operator()(T* p) const { std::free(p); }
  };
  std::unique_ptr<T[], Free> memory_;
  int64_t size_ = 0;
};

}  // namespace mh::detail
