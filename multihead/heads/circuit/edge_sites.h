// EdgeSites: gives the targets of a graph what they read in a run of some edges (edge_passes.h).
//
// What a target reads is that of one of two runs, the current or the corrupt one, whichever has fewer edges that differ:
//
//   x = x(corrupt) + sum over its edges of d_u       or       x = x(current) - sum over the edges that it lacks of d_u
//   d_u = what source u gives in this run - what it gives for the corrupt text
//
// and where norms stand on the stream's way, the same for each sublayer, one after the other through the norms.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "multihead/heads/circuit/edge_passes.h"
#include "multihead/heads/sites/site_values.h"

namespace mh {

/// The names of the sites of a graph's streams, to be kept in a run: sources, and what lies between them. step_by_step: what each
/// sublayer adds, too.
void keep_streams(const StreamGraph& graph, bool step_by_step, SiteValues& values);

/// For one pass.
class EdgeSites final : public Sites {
 public:
  struct Given {
    const StreamGraph& graph;
    const HeadMatrices& matrices;
    const SiteValues& corrupt;     // keep_streams(), of a pass over the pairs
    std::span<const int> pair_of;  // by run: the sequence of its pair in that pass
    std::span<const EdgePasses::Run> runs;
    bool step_by_step = false;
  };
  explicit EdgeSites(const Given& given);

  bool wants(const Site& site) const override { return actions_.contains(site.name()); }
  Var at(Tape& tape, const Site& site, const SiteValue& value) override;
  bool changes() const override { return true; }

 private:
  enum class Part { kEmbeddings, kHeads, kOutput, kBehind, kTargets };
  struct Action {
    Part part = Part::kTargets;
    int stream = 0, sublayer = -1;
    TargetKind kind = TargetKind::kStates;
  };
  /// What a target reads in a run.
  struct Reading {
    bool natural = true;   // what the model has anyway
    bool current = false;  // begin with the current run, and subtract
    std::vector<int> sources = {};
  };
  const Reading& reading(int target, size_t run) const {
    return readings_[static_cast<size_t>(target) * given_.runs.size() + run];
  }
  void plan();
  Var targets(Tape& tape, const Action& action, const SiteValue& value);
  /// What a target reads in a run, before its norm: [rows, d_model].
  Tensor stream_read(int target, size_t run) const;
  Tensor replayed(const StreamTarget& target, const Reading& reading, size_t run) const;
  void add(const Reading& reading, int source, size_t run, MatrixView x) const;
  std::span<const int32_t> offsets(int stream) const { return offsets_[static_cast<size_t>(stream)]; }
  /// The rows of a run in a value that was kept of the corrupt pass, or of this one.
  ConstMatrixView corrupt_rows(const std::string& site, size_t run) const;
  ConstMatrixView current_rows(const Tensor& value, int stream, size_t run) const;

  Given given_;
  std::map<std::string, Action, std::less<>> actions_;
  std::vector<Reading> readings_;              // [targets, runs]
  std::vector<bool> needed_;                   // by source: whether a reading names it
  std::vector<Tensor> differences_;            // by source, [rows, d_model]
  std::map<std::string, Tensor> current_;      // by site
  std::vector<std::vector<int32_t>> offsets_;  // by stream
};

/// y = Norm(x), in place, on the calling thread; without a gain nothing.
void normalise_rows(const NormParameters& norm, MatrixView x);

}  // namespace mh
