// What a file of this folder answers about what it does to queries and keys before they meet.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "multihead/nn/canonical_weights.h"
#include "multihead/nn/geometries/head_scheme.h"
#include "multihead/nn/head_geometry.h"
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
  /// Where HeadGeometry::scale is unset.
  virtual float usual_scale(int d_key) const = 0;
  /// Whether that is where a number of its own starts, and scores are not scaled.
  virtual bool takes_scale() const { return false; }

  /// heads: as their scheme makes them. g: completed().
  virtual std::unique_ptr<Heads> wrap(std::unique_ptr<Heads> heads, const HeadGeometry& /*g*/) const {
    return heads;
  }
  /// Its own, beside the heads' parameters; null: none.
  virtual const char* parameter() const { return nullptr; }
  /// What becomes of the formula of a head's queries or keys.
  virtual std::string formula(HeadPart /*part*/, std::string of_head) const { return of_head; }

  /// Adds to the cost of queries or keys: `heads` of `size` numbers for each row.
  virtual void add_cost(LedgerPart& /*cost*/, HeadPart /*part*/, int64_t /*rows*/, int64_t /*heads*/,
                        int64_t /*size*/) const {}
  /// Why a conversion is refused; null: it is not.
  virtual const char* refusal(Change /*change*/) const { return nullptr; }
};

}  // namespace mh
