// EdgePasses: runs of a model in which each target reads from some sources what they give in this run, and from all others what they
// give for the corrupt text (path patching, Goldowsky-Dill et al. 2023, "Localizing model behavior with path patching"). With all
// edges it is the clean run, with none the corrupt one.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "multihead/heads/circuit/circuit_texts.h"
#include "multihead/heads/circuit/head_matrices.h"
#include "multihead/heads/circuit/stream_graph.h"

namespace mh {

class EdgePasses {
 public:
  struct Options {
    Sites* sites = nullptr;          // called in all runs, first; may be null
    int64_t max_batch_tokens = 512;  // rows that run together; results depend on it only by rounding
    bool step_by_step = false;  // also where the stream is a sum, replay it sublayer by sublayer: a reference
  };
  /// REQUIRES: all of them outlive this.
  EdgePasses(const CircuitTexts& texts, const StreamGraph& graph, const HeadMatrices& matrices,
             const Options& options);

  struct Run {
    const CircuitPair* pair = nullptr;
    const EdgeSet* edges = nullptr;
  };
  /// score(answer) - score(wrong) of each run.
  std::vector<double> scores(std::span<const Run> runs) const;
  /// Of each pair's clean or corrupt text, as the model is.
  std::vector<double> plain_scores(std::span<const CircuitPair> pairs, bool corrupt) const;

 private:
  std::vector<double> batch_scores(std::span<const Run> runs) const;

  const CircuitTexts& texts_;
  const StreamGraph& graph_;
  const HeadMatrices& matrices_;
  Options options_;
};

}  // namespace mh
