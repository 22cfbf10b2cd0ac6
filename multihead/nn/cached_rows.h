// CachedRows: what a key/value cache keeps of the rows that one attention has read: their keys and values, as float32 or
// rounded to bfloat16.
#pragma once

#include <cstdint>

#include "multihead/autograd/tape.h"
#include "multihead/base/aligned.h"
#include "multihead/base/precision.h"
#include "multihead/nn/multi_head_attention.h"

namespace mh {

class CachedRows {
 public:
  /// Forgets all rows; the next ones have keys and values of these widths. Memory is used again.
  void start(CacheType type, int64_t key_width, int64_t value_width);
  /// Makes room for `rows` rows. The first `kept` of them stay as they are.
  void make_room(int64_t rows, int64_t kept);
  /// Puts keys [N, key_width] and values [N, value_width] into rows first ... first + N - 1, for which there is room.
  void write(int64_t first, Var keys, Var values);
  /// Rows 0 ... count - 1, without offsets and order, where they lie.
  KeysAndValues read(Tape& tape, int64_t count);

 private:
  int64_t width() const { return key_width_ + value_width_; }

  CacheType type_ = CacheType::kFloat32;
  int64_t key_width_ = 0, value_width_ = 0;
  // [rows, keys | values], one of the two
  AlignedBuffer<float> numbers_;
  AlignedBuffer<uint16_t> halves_;
};

}  // namespace mh
