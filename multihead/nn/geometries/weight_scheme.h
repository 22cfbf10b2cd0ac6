// What a file of this folder answers about what it weighs values with. The layer, the ledger, conversions and
// traces ask it; nobody else switches on HeadWeights.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "multihead/nn/canonical_weights.h"
#include "multihead/nn/geometries/head_scheme.h"
#include "multihead/nn/head_geometry.h"
#include "multihead/nn/ledger_part.h"
#include "multihead/nn/weighted_values.h"

namespace mh {

/// A matrix [Tq, Tk] and what the steps of a trace call it.
struct TracedMap {
  std::string name;
  Var value;
};

/// Where a trace takes down the steps from the maps of softmaxes to the heads' outputs, one sequence.
class WeighingTrace {
 public:
  virtual ~WeighingTrace() = default;
  virtual const HeadGeometry& geometry() const = 0;
  virtual int layer() const = 0;  // which of the stack
  virtual Tape& tape() = 0;
  virtual const Tensor& parameter(std::string_view name) const = 0;
  virtual Var values(int head) = 0;  // [Tk, d_value]
  virtual std::string name_of_values(int head) const = 0;

  virtual TracedMap add_map(std::string name, std::string formula, int head, Var value) = 0;
  /// Its softmax where the mask allows; a step more when there is a mask.
  virtual TracedMap add_softmax(std::string name, int head, const TracedMap& scores) = 0;
  virtual void add_number(std::string name, std::string formula, float value) = 0;
  virtual void add_rows(std::string name, std::string formula, int head, Tensor value) = 0;  // [Tq, ...]
  /// The head's output, z_HEAD: [Tq, d_value].
  virtual void add_output(int head, std::string formula, Tensor z) = 0;
};

/// What the ledger counts of a layer on one sequence.
struct WeighedRows {
  int64_t queries = 0;
  int64_t maps = 0;  // numbers in the matrices of Tq x Tk, one a softmax
};

class WeightScheme {
 public:
  WeightScheme() = default;
  WeightScheme(const WeightScheme&) = delete;
  WeightScheme& operator=(const WeightScheme&) = delete;
  virtual ~WeightScheme() = default;

  /// Of one head.
  virtual int softmaxes() const { return 1; }
  virtual void find_problems(const HeadGeometry& /*g*/, const HeadScheme& /*heads*/,
                             std::vector<std::string>& /*found*/) const {}
  virtual std::vector<GeometryPreset> presets() const { return {}; }
  /// g: completed(). layer: which of the stack, from 0.
  virtual std::unique_ptr<WeightedValues> make(const HeadGeometry& g, int layer) const = 0;
  /// What the fused kernel cannot compute: "talking heads"; null: nothing.
  virtual const char* unfused() const { return nullptr; }
  /// Why a conversion is refused; null: it is not.
  virtual const char* refusal(Change /*change*/) const { return nullptr; }

  // What the ledger adds. g: completed().
  virtual void add_to_scores(LedgerPart& /*cost*/, const HeadGeometry& /*g*/, const WeighedRows&) const {}
  virtual void add_to_average(LedgerPart& /*cost*/, const HeadGeometry& /*g*/, const WeighedRows&) const {}
  /// Bytes of the softmax by the composed path, of so many numbers.
  virtual void add_softmax_moves(LedgerPart& cost, int64_t maps) const;

  // The steps of a trace.
  /// Whether heads need each other's scores: then trace_all() is asked, with those of all heads, else
  /// trace_head() for each.
  virtual bool mixes_heads() const { return false; }
  /// weights: of each of the head's softmaxes.
  virtual void trace_head(WeighingTrace& /*trace*/, int /*head*/,
                          const std::vector<TracedMap>& /*weights*/) const {}
  /// scores: given away, since who traces writes over them.
  // NOLINTNEXTLINE(performance-unnecessary-value-param)
  virtual void trace_all(WeighingTrace& /*trace*/, std::vector<TracedMap> /*scores*/) const {}
};

/// The values weighed with a map: [Tq, d_value].
Tensor traced_average(WeighingTrace& trace, int head, const TracedMap& weights);

}  // namespace mh
