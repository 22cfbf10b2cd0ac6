// What a file of this folder answers about its way to make queries, keys and values. The ledger, conversions
// and traces ask it; nobody else switches on Scores or HeadInput::Kind, or takes names of parameters apart.
//
// What is not answered otherwise is what canonical heads answer, which read whole rows by w_q, w_k and w_v
// with heads side by side.
//
// Geometries given here are completed(), but for complete() and find_problems(). make(), shape() and cost()
// get them as the kernel has them (of_kernel()): heads counts softmaxes.
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

/// A projection on one sequence, whose cost is asked for.
struct ProjectedRows {
  int d_model = 0;
  int64_t queries = 0, keys = 0;  // rows of each
  bool own_rows = false;          // the keys' rows are the queries'

  int64_t of(HeadPart part) const { return part == HeadPart::kQueries ? queries : keys; }
};

/// The parameters of a layer as a trace calls them.
class TraceNames {
 public:
  virtual ~TraceNames() = default;
  virtual const HeadGeometry& geometry() const = 0;
  virtual int d_model() const = 0;
  virtual bool has(std::string_view name) const = 0;
  /// "w_q_0" when head 0 has a part of its own, else "w_q".
  virtual std::string of_head(std::string_view name, int head) const = 0;
};

class HeadScheme {
 public:
  HeadScheme() = default;
  HeadScheme(const HeadScheme&) = delete;
  HeadScheme& operator=(const HeadScheme&) = delete;
  virtual ~HeadScheme() = default;

  // Its description.
  /// Sets its own fields where they are 0. g: all others are set, but perhaps to what cannot be.
  virtual void complete(HeadGeometry& /*g*/) const {}
  /// Adds what makes a description impossible, a clause each. g: complete(), heads and d_model are positive.
  virtual void find_problems(const HeadGeometry& /*g*/, int /*d_model*/,
                             std::vector<std::string>& /*found*/) const {}
  virtual std::vector<GeometryPreset> presets() const { return {}; }
  /// Whether queries and keys are projected, a pair for each head: what is to be normed or turned.
  virtual bool projects_keys() const { return true; }
  /// Whether a head may have several queries and keys, one pair for each of its softmaxes.
  virtual bool several_softmaxes() const { return true; }
  /// Whether W^K may start as a copy of W^Q.
  virtual bool copies_queries() const { return false; }
  /// The field that sets how many numbers meet in a score.
  virtual const char* key_size_field() const { return "d_key"; }

  // Its layer.
  virtual HeadShape shape(const HeadGeometry& g, int d_model) const;
  virtual std::unique_ptr<Heads> make(const HeadGeometry& g, int d_model) const = 0;

  // Its parameters.
  /// As head_block(), of those that Heads::visit shows.
  virtual std::optional<Block> block(const HeadGeometry& g, int d_model, const NamedShape& parameter,
                                     int head) const;
  /// One head's queries, keys or values as a canonical head computes them; head: of queries. Of what is not
  /// projected there is none.
  virtual HeadMatrix head_matrix(const LayerWeights& layer, HeadPart part, int head) const;
  /// What `rows` become: "x w_q_0 + b_q_0". head: the first of those that share the weights.
  virtual std::string formula(const TraceNames& names, HeadPart part, const std::string& rows,
                              int head) const;

  // Its cost.
  virtual LedgerPart cost(const HeadGeometry& g, HeadPart part, const ProjectedRows& rows) const;

  // Conversions; who asks has refused what would be lost.
  /// Whether w_q, w_k and w_v are canonical heads' side by side, from which heads may be taken.
  virtual bool stands_side_by_side() const { return false; }
  /// What becoming canonical does to queries and keys.
  virtual Change change_to_canonical() const { return Change::kProjections; }
  virtual LayerWeights to_canonical(const LayerWeights& layer, const CanonicalOptions& options) const;
  /// Heads of this kind from those of another. wanted: fields of its own. Throws UsageError where there is no
  /// way.
  virtual LayerWeights from_heads(const LayerWeights& layer, const HeadGeometry& wanted) const;
};

}  // namespace mh
