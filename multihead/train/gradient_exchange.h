// GradientExchange: one update's gradient, made by all ranks together. The examples of an update are cut into
// shards of nearly equal cost; each rank makes the gradients of its shards, and all ranks get the sum.
//
//   usually:       a shard for each rank, sum over ranks in the order that is fastest
//   reproducible:  kFixedShards shards, however many ranks there are, summed in a fixed tree,
//                  (0 + 1) + (2 + 3): the same bits on 1, 2 and 4 ranks
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "multihead/autograd/gradient_buffer.h"
#include "multihead/distributed/process_group.h"
#include "multihead/train/objective.h"

namespace mh {

/// What the ranks did in one update.
struct RankTimes {
  /// Target tokens a second of forward and backward passes on the rank that made the fewest.
  double slowest_tokens_per_second = 0;
  /// How long a rank waited for others or summed with them, in seconds; the mean over ranks.
  double waiting_seconds = 0;
};

class GradientExchange {
 public:
  static constexpr size_t kFixedShards = 4;

  /// REQUIRES: both outlive this. Throws UsageError when reproducible and kFixedShards cannot be shared evenly by
  /// the group's ranks.
  GradientExchange(GradientBuffer& gradients, ProcessGroup& group, bool reproducible);

  size_t shards() const { return shards_; }
  /// The shards of this rank are [first_shard(), last_shard()).
  size_t first_shard() const { return static_cast<size_t>(group_.rank()) * own_; }
  size_t last_shard() const { return first_shard() + own_; }
  /// Call this after the backward passes of each shard, in order. The buffer is then zero for the next one.
  void finish_shard(const LossSums& sums);
  /// Call this after the last shard. The buffer then holds the sum over all shards, and parameters that any rank
  /// reached are marked. `seconds`: what the passes took. Returns the sums over all shards.
  LossSums finish_update(double seconds, RankTimes& times);

  /// Gives the values that one rank has for a parameter to all: `give` writes them into the matrix on that rank
  /// and leaves zeros elsewhere, `take` reads what was given. The memory is the gradients', which are zero before
  /// and after; only the sign of a zero may change.
  void spread(const std::function<void(size_t parameter, MatrixView to)>& give,
              const std::function<void(size_t parameter, ConstMatrixView from)>& take);

 private:
  GradientBuffer& gradients_;
  ProcessGroup& group_;
  size_t shards_, own_;
  SumOrder order_;
  std::vector<LossSums> sums_;  // of this rank's shards
  std::vector<std::vector<float>>
      left_halves_;  // gradients that wait for their neighbours, the largest first
};

}  // namespace mh
