// PackedMatrix: the right factor of products, in panels, as kernels/gemm.h multiplies with it.
//
// A panel is a few vectors wide, so that the inner loop reads it in order. How its numbers lie is its kind's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "multihead/base/aligned.h"
#include "multihead/base/block_matrix.h"
#include "multihead/base/matrix_view.h"
#include "multihead/base/precision.h"
#include "multihead/base/stored_matrix.h"

namespace mh {

/// Columns of a panel on this processor: a few vectors.
int64_t panel_width();

/// How a PackedMatrix holds its numbers (docs/precision.md).
enum class PanelKind {
  kFloat32,
  kHalves,    // bfloat16 or float16 (kernels/half_panels.h)
  kBlocks,    // the blocks that a file has (kernels/block_panels.h)
  kChannels,  // bytes with a scale for each column (kernels/channel_panels.h)
};

/// What packing makes of some matrices side by side.
struct PackedForm {
  PanelKind kind = PanelKind::kFloat32;
  ProductKernel kernel = ProductKernel::kFloat32;  // that multiplies with it
  NumberType half = NumberType::kBFloat16;         // of kHalves
  int64_t bytes = 0;                               // of all panels

  /// Whether rows of A are rounded before they are multiplied (kernels/product_rows.h).
  bool rounds_rows() const { return kernel != ProductKernel::kFloat32; }
};

/// What PackedMatrix::pack() makes of B = [parts[0] | parts[1] | ...], each [K, n_i]. Numbers are not read.
PackedForm packed_form(std::span<const StoredMatrix> parts, PrecisionChoice precision);
/// What pack_transposed() makes of blocks, each [n_i, K].
PackedForm packed_form(std::span<const BlockMatrix* const> parts, PrecisionChoice precision);

/// The right factor B [K, N] of a product, copied into panels: of float32, or of fewer bits.
class PackedMatrix {
 public:
  PackedMatrix() = default;

  /// B = [parts[0] | parts[1] | ...], each [K, n_i], straight from where they are stored. When called again
  /// it uses the same memory.
  void pack(std::span<const StoredMatrix> parts);
  /// B = [parts[0] | parts[1] | ...]^T, each [N, k_i]: for dX = dY W^T and for logits = h E^T.
  void pack_transposed(std::span<const StoredMatrix> parts);
  /// The same for a product of this precision: kSame keeps numbers of 16 bits as they are, kNear makes bfloat16 of them where the
  /// processor multiplies those faster, kFast bytes.
  void pack(std::span<const StoredMatrix> parts, PrecisionChoice precision);
  /// B = [parts[0] | parts[1] | ...]^T, each [n_i, K], whose numbers stay blocks (kernels/block_panels.h), and are multiplied with
  /// rows of float32 or with rounded ones. let_go() is called whenever some MiB of them have been copied, so that no second copy
  /// of a large matrix stays in memory.
  void pack_transposed(std::span<const BlockMatrix* const> parts, PrecisionChoice precision,
                       const std::function<void()>& let_go);
  void pack(const StoredMatrix& b) { pack({&b, 1}); }
  void pack_transposed(const StoredMatrix& b) { pack_transposed({&b, 1}); }
  void pack(ConstMatrixView b) { pack(StoredMatrix::of(b)); }
  void pack_transposed(ConstMatrixView b) { pack_transposed(StoredMatrix::of(b)); }

  int64_t rows() const { return rows_; }    // K
  int64_t cols() const { return cols_; }    // N
  int64_t panel() const { return panel_; }  // columns of a panel; the last panel is filled with zeros
  int64_t panels() const {
    if (kind() != PanelKind::kFloat32) return static_cast<int64_t>(small_panels_.size());
    return panel_ > 0 ? (cols_ + panel_ - 1) / panel_ : 0;
  }
  PanelKind kind() const { return form_.kind; }
  ProductKernel kernel() const { return form_.kernel; }
  Precision precision() const { return precision_; }
  bool rounds_rows() const { return form_.rounds_rows(); }
  /// Of all panels.
  int64_t bytes() const { return data_.size() * static_cast<int64_t>(sizeof(float)) + small_.size(); }
  /// Whether the panels have exactly the numbers that were packed.
  bool is_exact() const { return is_exact_; }
  /// Panel p: [K, panel], contiguous. REQUIRES: kind() is kFloat32.
  const float* panel_data(int64_t p) const { return data_.data() + p * rows_ * panel_; }

  /// A panel of another kind: columns [column, column + width) of B.
  struct SmallPanel {
    int64_t column = 0, width = 0;
    int64_t at = 0;                           // bytes from the first panel
    BlockType block = BlockType::kQ8_0;       // of kBlocks
    NumberType half = NumberType::kBFloat16;  // of kHalves
  };
  const SmallPanel& small_panel(int64_t p) const { return small_panels_[static_cast<size_t>(p)]; }
  const std::byte* small_data(int64_t p) const { return small_.data() + small_panel(p).at; }

 private:
  void reshape(int64_t rows, int64_t cols);
  void place(const StoredMatrix& part, int64_t k0, int64_t n0);
  void start_small(const PackedForm& form, Precision precision, int64_t rows);
  /// Adds panels for so many columns, which take so many bytes each, behind those that there are.
  void add_small(int64_t columns, int64_t bytes, SmallPanel like);

  int64_t rows_ = 0, cols_ = 0, panel_ = 0;
  PackedForm form_;
  Precision precision_ = Precision::kSame;
  bool is_exact_ = true;
  AlignedBuffer<float> data_;
  std::vector<SmallPanel> small_panels_;
  int64_t small_bytes_ = 0;
  AlignedBuffer<std::byte> small_;
};

/// What gradients dX = dY B^T of a product with B read (kernels/gradient_product.h).
struct GradientFactor {
  const PackedMatrix& panels;
  bool transposed;  // whether they are float32 panels of B^T; otherwise panels of fewer bits of B itself
};

}  // namespace mh
