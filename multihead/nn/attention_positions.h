// What one self-attention does about positions: it turns queries and keys, or adds to scores.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "multihead/autograd/attention.h"
#include "multihead/base/random.h"
#include "multihead/nn/context.h"
#include "multihead/nn/heads.h"
#include "multihead/nn/positions.h"

namespace mh {

/// Where rows stand in their sequences; exactly one is given. Must outlive the backward pass.
struct RowPlaces {
  std::span<const int32_t> offsets = {};    // [S + 1]: each sequence begins at position 0
  std::span<const int32_t> positions = {};  // or [N], each row's own
};

class AttentionPositions {
 public:
  AttentionPositions() = default;
  AttentionPositions(const AttentionPositions&) = delete;
  AttentionPositions& operator=(const AttentionPositions&) = delete;
  virtual ~AttentionPositions() = default;

  /// Queries or keys [N, heads * d_key], turned by where they stand.
  virtual Var turned(Context&, Var rows, int /*heads*/, const RowPlaces&) const { return rows; }
  /// What is added to the scores of q [Nq, H * d_key]: fills `fixed` and returns what is learned.
  virtual LearnedBias bias(Context&, Var /*q*/, AttentionBias& /*fixed*/) const { return {}; }
  virtual void initialise(Random&) {}
  /// In a fixed order, names "NAME.distance_bias", ...
  virtual void visit(const std::string& /*name*/, const ParameterVisitor&) {}
};

/// Null when attention has nothing to do about them. shape: what the kernel is told. `maps_per_head`: how
/// many of its softmaxes make one head.
std::unique_ptr<AttentionPositions> make_attention_positions(Positions positions,
                                                             AttentionDirection direction,
                                                             const HeadShape& shape, int d_model,
                                                             int maps_per_head = 1,
                                                             const RotaryOptions& rotary = {});

}  // namespace mh
