// How much of what heads write is read by heads of later layers (Composition, heads_circuits.h), for all pairs of two lists of heads
// in one product of matrices.
//
// With the triangular factors R of W_V, W_K, ... (W = Q R, Q with orthonormal columns) the norm of a product of four matrices
// is that of a narrow one, since Q changes no lengths:
//
//   |W_V1 W_O1 W_Q2 W_K2^T| = |(R_V1 W_O1) (W_Q2 R_K2^T)|
//
// A writer is R_V1 W_O1 / |W_OV1|, [d_value, d_model]; a reader W_Q2 R_K2^T / |W_QK2|, [d_model, d_key], W_K2 R_Q2^T / |W_QK2|
// for keys, and W_V2 R_O2^T / |W_OV2| for values, R_O2 of W_O2^T. A strength is the norm of writer times reader.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "multihead/heads/measures/heads_circuits.h"
#include "multihead/tensor/linear_algebra.h"

namespace mh {

/// Frobenius.
double norm_of(ConstDoubleView a);

struct Writer {
  DoubleMatrix matrix;  // [min(d_model, width), d_model]
  int64_t width = 0;    // d_value, for the baseline
};
/// triangular: R_V; outputs: W_O.
Writer writer_of(const DoubleMatrix& triangular, const DoubleMatrix& outputs);

struct Reader {
  DoubleMatrix matrix;  // [d_model, min(d_model, width)]
  int64_t width = 0;    // d_key or d_value, for the baseline
};
/// inputs: W_Q, W_K or W_V; triangular: the factor of the other matrix.
Reader reader_of(const DoubleMatrix& inputs, const DoubleMatrix& triangular);

/// The writers of one stack, one after the other, in float32.
class Writers {
 public:
  void add(size_t head, const Writer& writer);

 private:
  friend class Composer;
  struct Of {
    size_t head;
    int64_t begin, end, width;  // rows [begin, end)
  };
  std::vector<float> numbers_;  // [rows, d_model]
  std::vector<Of> heads_;
};

struct NamedReader {
  size_t head = 0;
  HeadPart part{};
  const Reader* reader = nullptr;
};

class Composer {
 public:
  Composer(int64_t d_model, const CircuitsOptions& options) : d_model_(d_model), options_(options) {}

  /// Adds the compositions of all these writers with all these readers.
  void compose(const Writers& writers, const std::vector<NamedReader>& readers, std::vector<Composition>& to);

 private:
  /// The mean strength between normal random matrices of these inner widths.
  double random(int64_t writer_width, int64_t reader_width);

  int64_t d_model_;
  CircuitsOptions options_;
  std::map<std::pair<int64_t, int64_t>, double> randoms_;
};

}  // namespace mh
