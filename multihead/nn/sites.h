// Sites: the places in a model at which a forward pass shows its values and goes on with what comes back. docs/sites.md
// lists them with their shapes. A site's name is its owner and its part:
//
//   encoder.embeddings  encoder.3.input  encoder.3.self_attention.queries  encoder.3.feed_forward.hidden  encoder.states
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "multihead/autograd/tape.h"

namespace mh {

enum class SitePart {
  // Of a stack, "encoder" or "decoder".
  kEmbeddings,  // [N, d_model] what the first layer reads: tokens, positions and types, after norm and dropout
  kStates,      // [N, d_model] what the stack gives, after its last norm
  // Of a layer, "encoder.3". With norms after the sublayers the sums are those after the norm.
  kInput,                // [N, d_model]
  kAfterSelfAttention,   // [N, d_model]
  kAfterCrossAttention,  // [N, d_model]
  kHidden,               // [N, d_ff] of the feed-forward layer, after its activation
  kFeedForward,          // [N, d_model] what the feed-forward layer adds, before dropout
  kOutput,               // [N, d_model]
  // Of an attention, "encoder.3.self_attention"; columns of all heads side by side.
  kQueries,  // [Nq, heads * d_key] as they meet the keys: after norms and rotary positions
  kKeys,     // [Nk, key_heads * d_key]
  kValues,   // [Nk, value_heads * d_value]
  kGates,    // [S, heads] what the outputs of heads are multiplied by, 1 unless they are changed
  kHeads,    // [Nq, heads * d_value] the heads' outputs after their gates, before W^O
};

/// "queries", "feed_forward.hidden": the part as it stands in a site's name.
std::string_view name_of(SitePart part);

/// A site of a model.
struct Site {
  std::string_view owner;
  SitePart part = SitePart::kEmbeddings;

  std::string name() const;
};

/// The places of rows in their sequences. Must outlive the backward pass.
struct RowPlaces {
  std::span<const int32_t> offsets = {};  // [S + 1]: sequence s has rows offsets[s] ... offsets[s + 1] - 1
  /// [N]: the position of each row in its sequence; empty: each sequence is whole and begins at position 0. In
  /// cached decoding the hypotheses of one source are one sequence, and several of its rows may have one position.
  std::span<const int32_t> positions = {};
};

/// A value at a site.
struct SiteValue {
  Var value;
  int blocks = 1;  // heads whose columns lie side by side
  RowPlaces rows = {};
};

/// Who is called at sites.
class Sites {
 public:
  virtual ~Sites() = default;
  /// Called before at(): what costs more is made only when it is wanted.
  virtual bool wants(const Site& site) const = 0;
  /// Returns what the model goes on with, of the same shape: the value itself, or another on the same tape.
  virtual Var at(Tape& tape, const Site& site, const SiteValue& value) = 0;
};

/// Called for every site of a model, in the order of a forward pass: its name, how many blocks of columns it has (heads,
/// or 1), and its columns.
struct SiteShape {
  std::string name;
  int blocks = 1;
  int64_t columns = 0;
};
using SiteVisitor = std::function<void(const SiteShape& site)>;

}  // namespace mh
