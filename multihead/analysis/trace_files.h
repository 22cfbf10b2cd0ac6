// Somebody's own layer from files, and every tensor of a walk into files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "multihead/analysis/trace.h"
#include "multihead/nn/multi_head_attention.h"
#include "multihead/tensor/tensor.h"

namespace mh {

struct OwnLayerOptions {
  int heads = 0;               // 0: as the shape of w_q says, when it has three axes
  std::optional<float> scale;  // unset: 1 / sqrt(d_key)
};

/// A canonical layer from w_q, w_k, w_v, w_o and, when they are there, b_q, b_k, b_v, b_o: from a
/// .safetensors file, or a folder of NAME.npy. Rows times matrices, y = x w: w_q [d_model, heads * d_key] or
/// [d_model, heads, d_key], w_o [heads * d_value, d_out] or [heads, d_value, d_out]; biases of as many
/// numbers. Fewer heads of keys and values are told by the shapes. Without w_o the heads' outputs are the
/// layer's. Throws FileError, FormatError and ShapeError naming the tensor, what was expected and found.
std::unique_ptr<MultiHeadAttention> read_own_layer(const std::filesystem::path& path,
                                                   const OwnLayerOptions& options);

/// [T, d] from a .npy file. Throws FormatError on another number of axes, no rows, or numbers that are not
/// finite.
Tensor read_rows(const std::filesystem::path& path);

/// A mask and the bits that it looks at.
struct OwnMask {
  std::vector<uint64_t> words;
  int64_t words_per_row = 0;

  Mask mask() const { return Mask::dense({words.data(), words_per_row}); }
};
/// [queries, keys] from a .npy file: query i may attend to key j where the number is not 0.
OwnMask read_mask(const std::filesystem::path& path, int64_t queries, int64_t keys);

/// NAME.npy for each step, and steps.txt with their shapes, formulas and owners; the folder appears as a
/// whole. Throws FileError, also when it holds anything else.
void save_trace(const AttentionTrace& trace, const std::filesystem::path& folder);

}  // namespace mh
