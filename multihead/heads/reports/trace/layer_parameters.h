// LayerParameters: the parameters of one layer for a trace: their names, the part of each that belongs to a
// head, and their formulas.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "multihead/nn/head_blocks.h"
#include "multihead/nn/head_scheme.h"
#include "multihead/nn/multi_head_attention.h"
#include "multihead/tensor/tensor.h"

namespace mh {

class LayerParameters final : public TraceNames {
 public:
  struct Named {
    std::string name;  // "w_q"
    const Tensor* value;
    bool after_heads() const { return name == "w_o" || name == "b_o"; }
  };

  /// REQUIRES: the layer outlives this.
  LayerParameters(const MultiHeadAttention& layer, int d_model);

  const std::vector<Named>& all() const { return all_; }
  /// Returns null when the layer has no parameter with this name.
  const Tensor* find(std::string_view name) const;
  /// As head_block().
  std::optional<Block> block(const Named& p, int head) const;
  /// Returns the formula of a projection of `rows`: "x w_q_0 + b_q_0". head: the first of those that share
  /// the weights. columns: "", or the columns of `rows` that are read: "[:, 0 ... 3]".
  std::string projection(const std::string& rows, HeadPart part, int head,
                         const std::string& columns = "") const;

  const HeadGeometry& geometry() const override { return geometry_; }
  int d_model() const override { return d_model_; }
  bool has(std::string_view name) const override { return find(name) != nullptr; }
  std::string of_head(std::string_view name, int head) const override;

 private:
  const Named* find_named(std::string_view name) const;

  const HeadGeometry& geometry_;
  int d_model_;
  std::vector<Named> all_;
};

}  // namespace mh
