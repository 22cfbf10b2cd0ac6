// WeightScheme: the interface of one kind of weights that average the values: softmax.cpp, differential.cpp
// and talking.cpp in this folder. The layer, the ledger, conversions and traces call it; no other file
// switches on HeadWeights.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "multihead/nn/canonical_weights.h"
#include "multihead/nn/head_geometry.h"
#include "multihead/nn/head_scheme.h"
#include "multihead/nn/ledger_part.h"
#include "multihead/nn/weighted_values.h"

namespace mh {

/// A matrix [Tq, Tk] and its name in the steps of a trace.
struct TracedMap {
  std::string name;
  Var value;
};

/// Records the steps of a trace from scores and weights to the heads' outputs, for one sequence.
class WeighingTrace {
 public:
  virtual ~WeighingTrace() = default;
  virtual const HeadGeometry& geometry() const = 0;
  virtual int layer() const = 0;  // its number in the stack, from 0
  virtual Tape& tape() = 0;
  virtual const Tensor& parameter(std::string_view name) const = 0;
  virtual Var values(int head) = 0;  // [Tk, d_value]
  virtual std::string name_of_values(int head) const = 0;

  virtual TracedMap add_map(std::string name, std::string formula, int head, Var value) = 0;
  /// Adds the softmax over the keys that the mask allows, and a step for the masked scores if there is a
  /// mask.
  virtual TracedMap add_softmax(std::string name, int head, const TracedMap& scores) = 0;
  virtual void add_number(std::string name, std::string formula, float value) = 0;
  virtual void add_rows(std::string name, std::string formula, int head, Tensor value) = 0;  // [Tq, ...]
  /// The head's output, z_HEAD: [Tq, d_value].
  virtual void add_output(int head, std::string formula, Tensor z) = 0;
};

/// The sizes that the ledger needs of a layer on one sequence.
struct WeighedRows {
  int64_t queries = 0;
  int64_t maps = 0;  // numbers in all Tq x Tk matrices, one matrix for each softmax
};

class WeightScheme {
 public:
  WeightScheme() = default;
  WeightScheme(const WeightScheme&) = delete;
  WeightScheme& operator=(const WeightScheme&) = delete;
  virtual ~WeightScheme() = default;

  /// How many softmaxes a head has.
  virtual int softmaxes() const { return 1; }
  virtual void find_problems(const HeadGeometry& /*g*/, const HeadScheme& /*heads*/,
                             std::vector<std::string>& /*found*/) const {}
  virtual std::vector<GeometryPreset> presets() const { return {}; }
  /// g: completed(). layer: its place in the stack, from 0.
  virtual std::unique_ptr<WeightedValues> make(const HeadGeometry& g, int layer) const = 0;
  /// What the fused kernel cannot compute, for messages: "talking heads"; null: it can compute this scheme.
  virtual const char* unfused() const { return nullptr; }
  /// Why a conversion must be refused; null: it need not.
  virtual const char* refusal(Change /*change*/) const { return nullptr; }

  // About the cost. g: completed().
  virtual void add_to_scores(LedgerPart& /*cost*/, const HeadGeometry& /*g*/, const WeighedRows&) const {}
  virtual void add_to_average(LedgerPart& /*cost*/, const HeadGeometry& /*g*/, const WeighedRows&) const {}
  /// Adds the bytes that the softmax of `maps` numbers reads and writes on the composed path.
  virtual void add_softmax_moves(LedgerPart& cost, int64_t maps) const;

  // About the trace.
  /// Whether heads need each other's scores. If so, trace_all() is called once with the scores of all
  /// heads, else trace_head() for each head.
  virtual bool mixes_heads() const { return false; }
  /// weights: one matrix for each softmax of the head.
  virtual void trace_head(WeighingTrace& /*trace*/, int /*head*/,
                          const std::vector<TracedMap>& /*weights*/) const {}
  /// scores: passed by value, since the implementation overwrites them.
  // NOLINTNEXTLINE(performance-unnecessary-value-param)
  virtual void trace_all(WeighingTrace& /*trace*/, std::vector<TracedMap> /*scores*/) const {}
};

/// Returns weights * values of a head: [Tq, d_value].
Tensor traced_average(WeighingTrace& trace, int head, const TracedMap& weights);

}  // namespace mh
