// Reads a layer, rows and a mask for a trace from files, and writes every tensor of a trace to files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "multihead/heads/reports/trace/trace.h"
#include "multihead/nn/multi_head_attention.h"
#include "multihead/tensor/tensor.h"

namespace mh {

struct OwnLayerOptions {
  int heads = 0;               // 0: taken from the shape of w_q, if that has three axes
  std::optional<float> scale;  // unset: 1 / sqrt(d_key)
};

/// Reads a canonical layer: w_q, w_k, w_v, w_o and optional b_q, b_k, b_v, b_o, from a .safetensors file or
/// a folder of NAME.npy. Rows are multiplied with matrices, y = x w: w_q is [d_model, heads * d_key] or
/// [d_model, heads, d_key], w_o [heads * d_value, d_out] or [heads, d_value, d_out], and a bias has one
/// number for each column. The shapes of w_k and w_v tell whether heads share keys or values. Without w_o
/// the output of the layer is that of the heads side by side. Throws FileError, FormatError and ShapeError
/// naming the tensor, what was expected and what was found.
std::unique_ptr<MultiHeadAttention> read_own_layer(const std::filesystem::path& path,
                                                   const OwnLayerOptions& options);

/// Reads rows [T, d] from a .npy file. Throws FormatError on another number of axes, no rows, or numbers
/// that are not finite.
Tensor read_rows(const std::filesystem::path& path);

/// A dense mask that owns its bits.
struct OwnMask {
  std::vector<uint64_t> words;
  int64_t words_per_row = 0;

  Mask mask() const { return Mask::dense({words.data(), words_per_row}); }
};
/// Reads a mask [queries, keys] of booleans or numbers from a .npy file: query i may attend to key j where it
/// is true or not 0.
OwnMask read_mask(const std::filesystem::path& path, int64_t queries, int64_t keys);

/// Writes NAME.npy for each step, and steps.txt with shapes, formulas and owners. The folder appears as a
/// whole. Throws FileError, also when a folder of that name has other files.
void save_trace(const AttentionTrace& trace, const std::filesystem::path& folder);

}  // namespace mh
