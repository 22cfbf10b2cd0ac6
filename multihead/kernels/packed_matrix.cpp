#include "multihead/kernels/packed_matrix.h"

#include <algorithm>

#include "multihead/base/thread_pool.h"
#include "multihead/kernels/block_panels.h"
#include "multihead/kernels/channel_panels.h"
#include "multihead/kernels/half_panels.h"
#include "multihead/kernels/product_kernels.h"

namespace mh {
namespace {

int64_t panels_of(int64_t columns) {
  return (columns + panel_width() - 1) / panel_width();
}

int64_t float_bytes(int64_t rows, int64_t columns) {
  return panels_of(columns) * panel_width() * rows * static_cast<int64_t>(sizeof(float));
}

/// Of a panel of numbers.
int64_t panel_bytes(const PackedForm& form, int64_t rows) {
  return form.kind == PanelKind::kChannels ? channel_panel_bytes(rows, panel_width())
                                           : half_panel_bytes(rows, panel_width());
}

}  // namespace

PackedForm packed_form(std::span<const StoredMatrix> parts, PrecisionChoice precision) {
  MH_ASSERT(!parts.empty());
  const int64_t rows = parts[0].rows;
  const NumberType type = parts[0].type;
  const bool alike =
      std::all_of(parts.begin(), parts.end(), [&](const StoredMatrix& part) { return part.type == type; });
  const ProductKernel kernel = kernel_for(precision, WeightsKind::kNumbers);
  PackedForm form;
  if (is_int8(kernel) && rows <= kMostChannelDepth) {
    form = {.kind = PanelKind::kChannels, .kernel = kernel};
  } else if (kernel == ProductKernel::kBFloat16Dots) {
    form = {.kind = PanelKind::kHalves, .kernel = kernel};
  } else if (type != NumberType::kFloat32 && alike) {
    form = {.kind = PanelKind::kHalves, .half = type};
  }
  int64_t columns = 0, panels = 0;
  for (const StoredMatrix& part : parts) {
    columns += part.cols;
    panels += panels_of(part.cols);
  }
  form.bytes =
      form.kind == PanelKind::kFloat32 ? float_bytes(rows, columns) : panels * panel_bytes(form, rows);
  return form;
}

PackedForm packed_form(std::span<const BlockMatrix* const> parts, PrecisionChoice precision) {
  PackedForm form{.kind = PanelKind::kBlocks, .kernel = kernel_for(precision, WeightsKind::kBlocks)};
  for (const BlockMatrix* part : parts)
    form.bytes += panels_of(part->rows) * block_panel_bytes(part->type, part->cols, panel_width());
  return form;
}

void PackedMatrix::reshape(int64_t rows, int64_t cols) {
  rows_ = rows;
  cols_ = cols;
  panel_ = panel_width();
  form_ = {.bytes = float_bytes(rows, cols)};
  precision_ = Precision::kSame;
  is_exact_ = true;
  small_panels_.clear();
  small_ = {};
  data_.resize((cols + panel_ - 1) / panel_ * panel_ * rows);
  const int64_t whole = cols / panel_ * panel_ * rows;
  std::fill_n(data_.data() + whole, data_.size() - whole,
              0.0f);  // the last panel, where columns end before it
}

// Rows k0 and columns n0 on of B are `part` [K', N'], a panel a task.
void PackedMatrix::place(const StoredMatrix& part, int64_t k0, int64_t n0) {
  const int64_t first = n0 / panel_, last = (n0 + part.cols - 1) / panel_;
  parallel_for(part.cols == 0 ? 0 : last - first + 1, [&](int64_t task) {
    const int64_t panel = first + task, begin = std::max(n0, panel * panel_),
                  end = std::min(n0 + part.cols, (panel + 1) * panel_);
    float* to = data_.data() + panel * panel_ * rows_ + k0 * panel_ + begin % panel_;
    if (part.col_stride == 1) {
      for (int64_t k = 0; k < part.rows; ++k) part.read_row(k, begin - n0, end - begin, to + k * panel_);
      return;
    }
    // The file has it the other way round: squares of 16 numbers, so that both sides stay in the nearest
    // cache.
    for (int64_t k = 0; k < part.rows; k += 16) {
      const int64_t k_end = std::min(k + 16, part.rows);
      for (int64_t n = begin; n < end; ++n) {
        for (int64_t kk = k; kk < k_end; ++kk) to[kk * panel_ + n - begin] = part(kk, n - n0);
      }
    }
  });
}

void PackedMatrix::pack(std::span<const StoredMatrix> parts) {
  MH_ASSERT(!parts.empty());
  int64_t cols = 0;
  for (const auto& part : parts) {
    MH_ASSERT(part.rows == parts[0].rows);
    cols += part.cols;
  }
  reshape(parts[0].rows, cols);
  int64_t column = 0;
  for (const auto& part : parts) {
    place(part, 0, column);
    column += part.cols;
  }
}

void PackedMatrix::pack_transposed(std::span<const StoredMatrix> parts) {
  MH_ASSERT(!parts.empty());
  int64_t rows = 0;
  for (const auto& part : parts) {
    MH_ASSERT(part.rows == parts[0].rows);
    rows += part.cols;
  }
  reshape(rows, parts[0].rows);
  int64_t k0 = 0;
  for (const auto& part : parts) {
    place(part.transposed(), k0, 0);
    k0 += part.cols;
  }
}

void PackedMatrix::start_small(const PackedForm& form, Precision precision, int64_t rows) {
  rows_ = rows;
  cols_ = small_bytes_ = 0;
  panel_ = panel_width();
  form_ = form;
  precision_ = precision;
  is_exact_ = form.kind != PanelKind::kChannels;
  small_panels_.clear();
  data_ = {};
}

void PackedMatrix::add_small(int64_t columns, int64_t bytes, SmallPanel like) {
  for (int64_t column = 0; column < columns; column += panel_) {
    like.column = cols_ + column;
    like.width = std::min(panel_, columns - column);
    like.at = small_bytes_;
    small_panels_.push_back(like);
    small_bytes_ += bytes;
  }
  cols_ += columns;
}

void PackedMatrix::pack(std::span<const StoredMatrix> parts, PrecisionChoice precision) {
  const PackedForm form = packed_form(parts, precision);
  if (form.kind == PanelKind::kFloat32) return pack(parts);
  const int64_t rows = parts[0].rows;
  start_small(form, precision.contract, rows);
  const bool bytes = form.kind == PanelKind::kChannels;
  for (const StoredMatrix& part : parts) {
    MH_ASSERT(part.rows == rows);
    is_exact_ = is_exact_ && part.type == form.half;
    add_small(part.cols, panel_bytes(form, rows), {.half = form.half});
  }
  small_.resize(small_bytes_);
  size_t first = 0;
  for (const StoredMatrix& part : parts) {
    const int64_t panels = (part.cols + panel_ - 1) / panel_;
    parallel_for(panels, [&](int64_t task) {
      const SmallPanel& panel = small_panels_[first + static_cast<size_t>(task)];
      std::byte* const to = small_.data() + panel.at;
      bytes ? pack_channel_panel(part, task * panel_, panel.width, panel_, to)
            : pack_half_panel(part, panel.half, task * panel_, panel.width, panel_, to);
    });
    first += static_cast<size_t>(panels);
  }
}

void PackedMatrix::pack_transposed(std::span<const BlockMatrix* const> parts, PrecisionChoice precision,
                                   const std::function<void()>& let_go) {
  MH_ASSERT(!parts.empty());
  start_small(packed_form(parts, precision), precision.contract, parts[0]->cols);
  struct From {
    const BlockMatrix* part;
    int64_t row;  // the first of the panel
  };
  std::vector<From> from;
  for (const BlockMatrix* part : parts) {
    MH_ASSERT(part->cols == rows_ && rows_ % block_layout(part->type).numbers == 0);
    for (int64_t row = 0; row < part->rows; row += panel_) from.push_back({part, row});
    add_small(part->rows, block_panel_bytes(part->type, rows_, panel_), {.block = part->type});
  }
  small_.resize(small_bytes_);
  constexpr int64_t kAtOnce = 8 << 20;  // bytes
  const int64_t at_once = std::max<int64_t>(1, kAtOnce * panels() / std::max<int64_t>(1, small_bytes_));
  for (int64_t begin = 0; begin < panels(); begin += at_once) {
    parallel_for(std::min(at_once, panels() - begin), [&](int64_t task) {
      const SmallPanel& panel = small_panel(begin + task);
      const auto& [part, row] = from[static_cast<size_t>(begin + task)];
      pack_block_panel(*part, row, panel.width, panel_, small_.data() + panel.at);
    });
    let_go();
  }
}

}  // namespace mh
