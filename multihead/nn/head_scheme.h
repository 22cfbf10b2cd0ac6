// HeadScheme: the interface of one way to project queries, keys and values, such as merged.cpp or
// segments.cpp in this folder. A scheme answers all questions about its own parameters: their shapes,
// initialisation, cost, conversion and formula in a trace. The ledger, conversions and traces call it; no
// other file switches on Scores or HeadInput::Kind or takes names of parameters apart.
//
// The default answers here are those of canonical heads, which read whole rows x [N, d_model] through w_q,
// w_k and w_v, with heads side by side.
//
// complete() and find_problems() get a description as the user wrote it; all other functions get it
// completed(). make(), shape() and cost() get it as the kernel sees it (kernel_geometry()), where `heads` counts
// softmaxes.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "multihead/nn/canonical_weights.h"
#include "multihead/nn/head_blocks.h"
#include "multihead/nn/head_geometry.h"
#include "multihead/nn/heads.h"
#include "multihead/nn/layer_weights.h"
#include "multihead/nn/ledger_part.h"

namespace mh {

/// The sizes of a projection of one sequence, for its cost.
struct ProjectedRows {
  int d_model = 0;
  int64_t queries = 0, keys = 0;  // how many rows of each
  bool own_rows = false;          // self-attention: keys are made of the queries' rows

  int64_t of(HeadPart part) const { return part == HeadPart::kQueries ? queries : keys; }
};

/// The names that a trace gives to the parameters of a layer.
class TraceNames {
 public:
  virtual ~TraceNames() = default;
  virtual const HeadGeometry& geometry() const = 0;
  virtual int d_model() const = 0;
  virtual bool has(std::string_view name) const = 0;
  /// "w_q_0" when head 0 has its own part of the parameter, else "w_q".
  virtual std::string of_head(std::string_view name, int head) const = 0;
};

class HeadScheme {
 public:
  HeadScheme() = default;
  HeadScheme(const HeadScheme&) = delete;
  HeadScheme& operator=(const HeadScheme&) = delete;
  virtual ~HeadScheme() = default;

  // About the description.
  /// Sets the fields that only this scheme uses when they are 0. The other fields of g are set, perhaps to
  /// impossible values.
  virtual void complete(HeadGeometry& /*g*/) const {}
  /// Adds a clause for everything that makes the description impossible. complete(g) was called; heads and
  /// d_model are positive.
  virtual void find_problems(const HeadGeometry& /*g*/, int /*d_model*/,
                             std::vector<std::string>& /*found*/) const {}
  virtual std::vector<GeometryPreset> presets() const { return {}; }
  /// Whether keys are projected, so that queries and keys can be normed or turned by rotary positions. The
  /// keys of merged heads are the input itself.
  virtual bool projects_keys() const { return true; }
  /// Whether a head may have several queries and keys, one pair for each of its softmaxes
  /// (differential heads).
  virtual bool several_softmaxes() const { return true; }
  /// Whether W^K may start as a copy of W^Q.
  virtual bool copies_queries() const { return false; }
  /// The name of the field that sets the size of queries and keys.
  virtual const char* key_size_field() const { return "d_key"; }

  // About the layer.
  virtual HeadShape shape(const HeadGeometry& g, int d_model) const;
  virtual std::unique_ptr<Heads> make(const HeadGeometry& g, int d_model) const = 0;

  // About the parameters.
  /// As head_block(), for the parameters that Heads::visit shows.
  virtual std::optional<Block> block(const HeadGeometry& g, int d_model, const NamedShape& parameter,
                                     int head) const;
  /// The projection of one query head, written as that of a canonical head. Not called for a part that is
  /// not projected.
  virtual HeadMatrix head_matrix(const LayerWeights& layer, HeadPart part, int head) const;
  /// The formula of a projection in a trace: "x w_q_0 + b_q_0". head: the first of those that share the
  /// weights.
  virtual std::string formula(const TraceNames& names, HeadPart part, const std::string& rows,
                              int head) const;

  // About the cost.
  virtual LedgerPart cost(const HeadGeometry& g, HeadPart part, const ProjectedRows& rows) const;

  // About conversions. The caller has refused those that would lose something.
  /// Whether w_q, w_k and w_v hold canonical heads side by side, so that single heads can be taken out.
  virtual bool heads_lie_side_by_side() const { return false; }
  /// What to_canonical() does to queries and keys.
  virtual Change change_to_canonical() const { return Change::kProjections; }
  virtual LayerWeights to_canonical(const LayerWeights& layer, const CanonicalOptions& options) const;
  /// Makes heads of this kind from another layer. wanted: the fields that only this scheme uses. Throws
  /// UsageError when that is impossible.
  virtual LayerWeights from_heads(const LayerWeights& layer, const HeadGeometry& wanted) const;
};

}  // namespace mh
