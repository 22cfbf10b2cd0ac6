// Part of the attention kernel: what inputs and results must be.
#pragma once

#include <cstdint>

#include "multihead/kernels/attention.h"

namespace mh::detail {

/// Throws ShapeError or UsageError naming the field that is wrong.
void check_attention(const AttentionInputs& inputs, const char* caller);
void check_gate(const char* caller, const char* name, const ConstMatrixView& view, int64_t sequences,
                int64_t heads);
void check_result(const char* caller, const char* name, const ConstMatrixView& view, int64_t rows,
                  int64_t cols);
/// of_keys: a view of keys or values, not of queries.
void check_result(const char* caller, const char* name, const AttentionInputs& inputs,
                  const ConstHeadsView& view, int64_t rows, int64_t heads, int64_t size,
                  bool of_keys = false);
void check_number_strides(const char* caller, const char* name, const AttentionInputs& inputs,
                          const NumberStrides& strides);

}  // namespace mh::detail
