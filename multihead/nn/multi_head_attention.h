// MultiHead(Q, K, V) = Concat(head_1, ..., head_h) W^O,  head_i = Attention(x W_i^Q, m W_i^K, m W_i^V)
//                                                                       (Vaswani et al. 2017, section 3.2.2)
//
// MultiHeadAttention is one attention with its parameters. Queries come from the rows x [N, d_model], keys
// and values from the memory m [Nk, d_model]; in self-attention m is x. The result is [N, d_out]. Rows of
// several sequences lie one after the other (batch/batch.h).
//
// The geometry says how x and m become the Q, K and V of all heads (head_geometry.h). This class does the
// rest: positions, attention through the kernel, gates of heads, sites, and the output projection.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "multihead/autograd/parameter.h"
#include "multihead/base/random.h"
#include "multihead/nn/context.h"
#include "multihead/nn/stack_config.h"

namespace mh {

class Affine;
class AttentionPositions;
class Heads;
class WeightedValues;
enum class HeadPart;
struct LearnedInputs;
struct ProjectedHeads;  // nn/heads.h

struct MultiHeadAttentionConfig {
  int d_model = 512;
  int d_out = 0;  // width of the output; 0: d_model, as a residual sum needs
  HeadGeometry geometry = {};
  float norm_epsilon = 1e-6f;              // of norms of queries and keys
  float weights_dropout = 0;               // dropout rate of the attention weights
  Positions positions = Positions::kNone;  // those that are added to embeddings change nothing here
  RotaryOptions rotary = {};               // for Positions::kRotary
  T5Buckets buckets = {};                  // for Positions::kT5
  DisentangledOptions disentangled = {};   // for Positions::kDisentangled
  StackMask mask = {};                     // which keys self-attention in a stack sees
  int layer = 0;                           // its number in the stack, from 0
};

/// Keys and values that are projected already: those of a memory (cross-attention), or those in a cache
/// (decoding).
struct KeysAndValues {
  Var keys = {};                          // [Nk, key_heads * d_key]
  Var values = {};                        // [Nk, value_heads * d_value]
  std::span<const int32_t> offsets = {};  // [S + 1]: sequence s has keys offsets[s] ... offsets[s + 1] - 1
  std::span<const int32_t> rows = {};     // AttentionInputs::key_rows
  // In place of keys and values, those of AttentionInputs:
  ConstHalfView half_keys = {}, half_values = {};
};

class MultiHeadAttention {
 public:
  /// `name` begins the names of its sites and heads. Throws UsageError when the sizes in config do not fit
  /// together.
  MultiHeadAttention(std::string name, const MultiHeadAttentionConfig& config, DropoutStreams& streams);
  MultiHeadAttention(const MultiHeadAttention&) = delete;
  MultiHeadAttention& operator=(const MultiHeadAttention&) = delete;
  ~MultiHeadAttention();

  const std::string& name() const { return name_; }
  /// The geometry with all defaults filled in (completed()).
  const HeadGeometry& geometry() const { return config_.geometry; }
  int heads() const { return config_.geometry.heads; }
  const MultiHeadAttentionConfig& config() const { return config_; }
  /// The width of a row of keys, and of a row of values.
  int64_t key_width() const;
  /// What products of queries and keys are multiplied by: 1 / sqrt(d_key) unless the geometry says otherwise.
  float scale() const;
  int64_t value_width() const;

  /// Self-attention, W^O applied: [N, d_model] -> [N, d_out].
  Var self(Context& context, Var x, const Sequences& rows, const Mask& mask) const;
  /// Cross-attention to a memory [Nk, d_model] whose sequences begin at `offsets`, W^O applied: [N, d_out].
  Var cross(Context& context, Var x, const Sequences& rows, Var memory,
            std::span<const int32_t> offsets) const;

  // The same in parts, for a stack. It applies W^O together with the residual sum and norm, and keeps keys
  // and values in a cache.

  /// Self-attention: Concat(head_1, ...) before W^O, [N, heads * d_value].
  Var self_heads(Context& context, Var x, const Sequences& rows, const Mask& mask) const;
  /// Queries, keys and values of the rows x, which stand at these positions.
  ProjectedHeads project(Context& context, Var x, const RowPlaces& places) const;
  /// The queries of the rows x, whose keys come from a memory.
  Var project_queries(Context& context, Var x, const RowPlaces& places) const;
  KeysAndValues project_memory(Context& context, Var memory, std::span<const int32_t> offsets) const;
  /// Concat(head_1, ...) for queries q against the given keys: [Nq, heads * d_value]. `places`: those of the
  /// queries' rows, for whoever is called at sites.
  Var attend(Context& context, Var q, const Sequences& rows, const KeysAndValues& memory, const Mask& mask,
             const RowPlaces& places) const;
  /// W^O applied to the heads' outputs, where somebody asks for contributions or the output; nothing otherwise.
  Var output_for_sites(Context& context, Var heads, const RowPlaces& places) const;
  /// W^O, which the residual connection applies; null when there is none (HeadOutput::kConcatenation).
  const Affine* output() const { return output_.get(); }

  /// Calls the visitor with the attention's sites.
  void visit_sites(const SiteVisitor& visitor) const;
  /// Takes the positional parameters of `other`; of disentangled positions, which both then have, those alone that all layers
  /// share.
  void share_positions(const MultiHeadAttention& other);

  void initialise(Random& random);
  void visit(const std::string& name, const ParameterVisitor& visitor);
  void visit(const std::string& name, const ConstParameterVisitor& visitor) const;
  /// Calls the visitor with the parameters that it shares with another attention (share_positions()), which visit() leaves out.
  void visit_shared(const std::string& name, const ConstParameterVisitor& visitor) const;

 private:
  Var output_of(Context& context, Var heads) const;
  /// [sequences, heads]; nothing when nobody asks: all are 1.
  Var gates(Context& context, const Ragged& rows, const RowPlaces& places) const;
  /// Queries or keys as the scores take them: normed and turned. `turned`: whether positions turn them, as in self-attention.
  Var normed_and_turned(Context& context, HeadPart part, Var projected, bool turned,
                        const RowPlaces& places) const;
  /// What was projected of x [N, d_model], where it is there; the columns of heads whose input somebody changes at its site are
  /// projected of that.
  ProjectedHeads with_own_inputs(Context& context, Var x, const ProjectedHeads& projected,
                                 const RowPlaces& places) const;
  /// What the model goes on with at a site of all heads.
  Var at(const Context& context, SitePart part, Var value, int blocks, const RowPlaces& places) const {
    return context.at({name_, part}, {.value = value, .blocks = blocks, .rows = places});
  }

  std::string name_;
  MultiHeadAttentionConfig config_;  // its geometry completed()
  uint32_t stream_;
  std::unique_ptr<Heads> heads_;
  std::shared_ptr<AttentionPositions> positions_;  // null: nothing to do
  bool owns_positions_ = true;
  std::unique_ptr<WeightedValues> values_;
  Parameter w_o_, b_o_;
  std::unique_ptr<const Affine> output_, contribution_;  // W^O with its bias, and without it
};

}  // namespace mh
