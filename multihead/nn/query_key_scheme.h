// QueryKeyScheme: the interface of what is done to queries and keys between their projection and their
// product, such as query_key_norm.cpp in this folder.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "multihead/nn/canonical_weights.h"
#include "multihead/nn/head_geometry.h"
#include "multihead/nn/head_scheme.h"
#include "multihead/nn/heads.h"
#include "multihead/nn/ledger_part.h"

namespace mh {

class QueryKeyScheme {
 public:
  QueryKeyScheme() = default;
  QueryKeyScheme(const QueryKeyScheme&) = delete;
  QueryKeyScheme& operator=(const QueryKeyScheme&) = delete;
  virtual ~QueryKeyScheme() = default;

  virtual void find_problems(const HeadScheme& /*heads*/, std::vector<std::string>& /*found*/) const {}
  virtual std::vector<GeometryPreset> presets() const { return {}; }
  /// The scale to use when HeadGeometry::scale is unset.
  virtual float usual_scale(int d_key) const = 0;
  /// Whether the scale is only the initial value of a learned parameter of this scheme; then scores are not
  /// scaled.
  virtual bool takes_scale() const { return false; }

  /// Wraps the heads that their HeadScheme made. g: completed(). epsilon: of norms.
  virtual std::unique_ptr<Heads> wrap(std::unique_ptr<Heads> heads, const HeadGeometry& /*g*/,
                                      float /*epsilon*/) const {
    return heads;
  }
  /// The names of the parameters of this scheme.
  virtual std::vector<const char*> parameters() const { return {}; }
  /// Multiplies the columns of a head's projection by what its queries or keys are multiplied with after their norm. head: of
  /// queries, or of keys.
  virtual void fold_gain(const LayerWeights& /*layer*/, HeadPart /*part*/, int /*head*/,
                         DoubleMatrix& /*weight*/) const {}
  /// The formula of a head's queries or keys in a trace, given the formula of their projection.
  virtual std::string formula(HeadPart /*part*/, std::string of_head) const { return of_head; }

  /// Adds its own cost for queries or keys: `heads` heads of `size` numbers in each row.
  virtual void add_cost(LedgerPart& /*cost*/, HeadPart /*part*/, int64_t /*rows*/, int64_t /*heads*/,
                        int64_t /*size*/) const {}
  /// Why a conversion must be refused; null: it need not.
  virtual const char* refusal(Change /*change*/) const { return nullptr; }
};

}  // namespace mh
