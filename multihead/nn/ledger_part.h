// LedgerPart: the counts of one part of a layer, such as its queries. Sums and products are checked against
// overflow.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>

namespace mh {

struct LedgerPart {
  std::string name;
  int64_t parameters = 0;     // numbers that are learned
  int64_t multiply_adds = 0;  // in products of matrices: a b + c counts as one
  int64_t other_flops = 0;    // additions of biases, scaling, comparisons, ...
  int64_t exponentials = 0;   // not among the FLOPs
  // Bytes of float32 activations if each is read and written once; caches make it less.
  int64_t read_bytes = 0;
  int64_t written_bytes = 0;
  int64_t kept_bytes = 0;  // the part of written_bytes that training keeps until the backward pass

  int64_t weight_bytes() const { return 4 * parameters; }
  /// A multiply-add counts as two.
  int64_t flops() const { return 2 * multiply_adds + other_flops; }

  LedgerPart& operator+=(const LedgerPart& other);
  /// Multiplies all counts, e.g. those of one layer for all layers. Throws UsageError beyond 2^63; so do
  /// the functions below.
  LedgerPart repeated(int64_t times) const;

  /// Adds `read` numbers that are read, and `written` numbers that are written and kept until the backward
  /// pass.
  void add_moves(int64_t read, int64_t written);
  /// Adds the cost of x W + b: [rows, inputs] -> [rows, outputs].
  void add_affine(int64_t rows, int64_t inputs, int64_t outputs, bool biased);

  bool operator==(const LedgerPart&) const = default;
};

/// A product and a sum of counts. They throw UsageError beyond 2^63.
int64_t count_product(std::initializer_list<int64_t> factors);
int64_t count_sum(int64_t a, int64_t b);

inline constexpr int64_t kFloatBytes = 4;

}  // namespace mh
