// AttentionPositions: what one self-attention does for positional encoding. It turns queries and keys
// (rotary), or adds a bias to the scores (ALiBi, T5, Shaw, DeBERTa). Positions that are added to embeddings are not
// here (position_table.h).
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

/// The heads whose scores get a bias: of self-attention, or in cached decoding of new queries.
struct ScoredHeads {
  const Heads& heads;
  Var q;  // [Nq, H * d_key]
  Var k;  // [Nk, G * d_key]; null: a cache has them in another form
  std::span<const int32_t> query_offsets, key_offsets;  // [S + 1]
};

class AttentionPositions {
 public:
  AttentionPositions() = default;
  AttentionPositions(const AttentionPositions&) = delete;
  AttentionPositions& operator=(const AttentionPositions&) = delete;
  virtual ~AttentionPositions() = default;

  /// Returns queries or keys [N, heads * d_key], turned according to their positions.
  virtual Var turned(Context&, Var rows, int /*heads*/, const RowPlaces&) const { return rows; }
  /// The bias that is added to the scores: sets its fixed part in `fixed` and returns its learned part.
  virtual LearnedInputs bias(Context&, const ScoredHeads&, AttentionBias& /*fixed*/) const { return {}; }
  /// Takes the parameters that all layers of a stack share from another layer's positions of the same kind; no: it has
  /// none but its own. It then visits the others alone.
  virtual bool share(const AttentionPositions& /*other*/) { return false; }
  /// Calls the visitor with the parameters that share() took, by the names that visit() would give them.
  virtual void visit_shared(const std::string& /*name*/, const ParameterVisitor&) const {}
  virtual void initialise(Random&) {}
  /// Calls the visitor with every parameter in a fixed order, "NAME.distance_bias", ...
  virtual void visit(const std::string& /*name*/, const ParameterVisitor&) {}
};

/// Returns null when self-attention has nothing to do for these positions. shape: as the kernel gets it.
/// `softmaxes_per_head`: how many of its softmaxes make one head (2 for differential heads).
std::unique_ptr<AttentionPositions> make_attention_positions(
    Positions positions, AttentionDirection direction, const HeadShape& shape, int d_model,
    int softmaxes_per_head = 1, const RotaryOptions& rotary = {}, const T5Buckets& buckets = {});
/// Those of Positions::kDisentangled. norm_epsilon: of the norm of the vectors.
std::unique_ptr<AttentionPositions> make_disentangled_positions(const DisentangledOptions& options,
                                                                const HeadShape& shape, int d_model,
                                                                float norm_epsilon);

}  // namespace mh
