#include "multihead/nn/heads.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "multihead/nn/head_scheme.h"
#include "multihead/nn/initialise.h"
#include "multihead/nn/query_key_scheme.h"

namespace mh {

namespace {

/// Gram-Schmidt on normal numbers, in double: columns orthonormal, or rows when there are fewer of them.
void orthogonal(MatrixView w, Random& random) {
  const bool wide = w.cols > w.rows;
  const int64_t vectors = wide ? w.rows : w.cols, size = wide ? w.cols : w.rows;
  const auto at = [&](int64_t vector, int64_t n) -> float& { return wide ? w(vector, n) : w(n, vector); };
  std::vector<std::vector<double>> done;
  while (static_cast<int64_t>(done.size()) < vectors) {
    std::vector<double> v(static_cast<size_t>(size));
    for (double& x : v) x = random.normal();
    for (int pass = 0; pass < 2; ++pass) {  // once more for what rounding left
      for (const auto& u : done) {
        double dot = 0;
        for (size_t n = 0; n < v.size(); ++n) dot += u[n] * v[n];
        for (size_t n = 0; n < v.size(); ++n) v[n] -= dot * u[n];
      }
    }
    double norm = 0;
    for (const double x : v) norm += x * x;
    norm = std::sqrt(norm);
    if (norm < 1e-6) continue;  // drawn into the span of the others: draw again
    for (size_t n = 0; n < v.size(); ++n) {
      v[n] /= norm;
      at(static_cast<int64_t>(done.size()), static_cast<int64_t>(n)) = static_cast<float>(v[n]);
    }
    done.push_back(std::move(v));
  }
}

}  // namespace

void make_equal(const HeadGeometry& geometry, const std::vector<MatrixView>& blocks, Random& random) {
  if (!starts_equal(geometry.initialisation)) return;
  const double noise = geometry.initialisation == HeadInitialisation::kEqualWithNoise ? 1e-6 : 0;
  for (size_t b = 1; b < blocks.size(); ++b) {
    for (int64_t r = 0; r < blocks[b].rows; ++r) {
      for (int64_t c = 0; c < blocks[b].cols; ++c) {
        const double added = noise > 0 ? noise * random.normal() : 0;
        blocks[b](r, c) = static_cast<float>(blocks[0](r, c) + added);
      }
    }
  }
}

std::unique_ptr<Heads> make_heads(const HeadGeometry& geometry, int d_model, float norm_epsilon) {
  return query_key_scheme_of(geometry).wrap(scheme_of(geometry).make(kernel_geometry(geometry), d_model),
                                            geometry, norm_epsilon);
}

void initialise_heads(const HeadGeometry& geometry, Parameter& weight, int heads, int64_t packed_columns,
                      Random& random) {
  const int64_t rows = weight.value.rows(), cols = weight.value.cols(), width = cols / heads;
  std::vector<MatrixView> blocks;
  for (int h = 0; h < heads; ++h)
    blocks.push_back(weight.value.view().columns_between(h * width, (h + 1) * width));
  switch (geometry.initialisation) {
    case HeadInitialisation::kXavier:
    case HeadInitialisation::kCopiedKeys:  // the copy is made by who holds both
      fill_xavier(weight, random, rows, cols);
      break;
    case HeadInitialisation::kXavierHead:
      fill_xavier(weight, random, rows, width);
      break;
    case HeadInitialisation::kXavierPacked:
      fill_xavier(weight, random, rows, packed_columns);
      break;
    case HeadInitialisation::kOrthogonal:
      for (const MatrixView& block : blocks) orthogonal(block, random);
      break;
    case HeadInitialisation::kEqual:
    case HeadInitialisation::kEqualInput:
    case HeadInitialisation::kEqualWithNoise:
      fill_xavier(weight, random, rows, cols);
      make_equal(geometry, blocks, random);
      break;
  }
  weight.changed();
}

void initialise_output(const HeadGeometry& geometry, Parameter& weight, Random& random) {
  fill_xavier(weight, random, weight.value.rows(), weight.value.cols());
  if (geometry.initialisation == HeadInitialisation::kEqualInput) return;
  std::vector<MatrixView> blocks;
  for (int h = 0; h < geometry.heads; ++h) {
    blocks.push_back(
        weight.value.view().rows_between(int64_t{h} * geometry.d_value, (int64_t{h} + 1) * geometry.d_value));
  }
  make_equal(geometry, blocks, random);
  weight.changed();
}

}  // namespace mh
