#include "multihead/heads/circuit/head_matrices.h"

#include <algorithm>

#include "multihead/kernels/gemm.h"
#include "multihead/nn/canonical_weights.h"
#include "multihead/nn/layer_weights.h"

namespace mh {

HeadMatrices::HeadMatrices(const StreamGraph& graph)
    : graph_(graph), projections_(graph.targets().size()), outputs_(graph.sources().size()) {
  const int d_model = graph.model().facts().d_model;
  for (int s = 0; s < static_cast<int>(graph.streams().size()); ++s) {
    const Stream& stream = graph.streams()[static_cast<size_t>(s)];
    for (int i = 0; i < static_cast<int>(stream.sublayers.size()); ++i) {
      const StreamSublayer& sublayer = stream.sublayers[static_cast<size_t>(i)];
      if (sublayer.attention == nullptr) continue;
      const LayerWeights layer = weights_of(*sublayer.attention, d_model);
      const auto pack = [&](HeadPart part, TargetKind kind) {
        const StreamGraph::Targets targets = graph.targets_of(s, i, kind);
        const std::vector<HeadMatrix> heads = heads_of(layer, part, targets.count);
        for (int h = 0; h < targets.count; ++h) {
          HeadProjection& made = projections_[static_cast<size_t>(targets.first + h)];
          const Tensor weight = in_float(heads[static_cast<size_t>(h)].weight.view());
          made.weight.pack(weight.view());
          made.transposed.pack_transposed(weight.view());
          made.bias = in_float(heads[static_cast<size_t>(h)].bias.view());
        }
      };
      pack(HeadPart::kQueries, TargetKind::kQueries);
      pack(HeadPart::kKeys, TargetKind::kKeys);
      pack(HeadPart::kValues, TargetKind::kValues);
      for (int h = 0; h < sublayer.sources && sublayer.attention->output() != nullptr; ++h)
        outputs_[static_cast<size_t>(sublayer.first_source + h)].pack(
            in_float(output_matrix(layer, h).view()).view());
    }
  }
}

Tensor HeadMatrices::written(int source, ConstMatrixView z) const {
  const StreamSource& from = graph_.sources()[static_cast<size_t>(source)];
  const StreamSublayer& sublayer =
      graph_.streams()[static_cast<size_t>(from.stream)].sublayers[static_cast<size_t>(from.sublayer)];
  const int64_t width = z.cols / sublayer.sources;
  const int64_t begin = from.head * width;
  const ConstMatrixView own = z.columns_between(begin, begin + width);
  if (sublayer.attention->output() == nullptr) {
    Tensor found(z.rows, z.cols);
    for (int64_t i = 0; i < z.rows; ++i) std::copy_n(own.row(i), width, found.view().row(i) + begin);
    return found;
  }
  const PackedMatrix& output = outputs_[static_cast<size_t>(source)];
  Tensor found(z.rows, output.cols());
  multiply(own, output, found.view());
  return found;
}

}  // namespace mh
