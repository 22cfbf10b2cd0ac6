// ProcessGroup: several processes that train one model together, each with a copy of it. A process is called a
// rank, as in MPI, and has a number from 0. Training asks four things of the group; join_processes()
// (join_processes.h) makes one of the processes that a launcher such as mpirun has started.
//
//   group.sum(gradient, SumOrder::kFastest);   // on every rank the sum of all ranks' gradients
//
// Every rank makes the same calls in the same order.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "multihead/base/error.h"

namespace mh {

/// A rank has ended, or has not answered in time. Nothing can be agreed upon any more: every rank ends.
class LostRank : public Error {
 public:
  enum class Speaks { kThisRank, kAnotherRank };
  LostRank(const std::string& what, Speaks speaks) : Error(what), speaks_(speaks) {}
  /// Every rank finds out; one of those that are left tells the user.
  bool this_rank_speaks() const { return speaks_ == Speaks::kThisRank; }

 private:
  Speaks speaks_;
};

/// The order in which the ranks' numbers are added, which decides how the sum is rounded.
enum class SumOrder {
  kFastest,    // as the library of the network does it
  kFixedTree,  // neighbours first, (0 + 1) + (2 + 3), then neighbouring pairs, ...; for 1, 2, 4, 8, ... ranks
};

class ProcessGroup {
 public:
  virtual ~ProcessGroup() = default;

  /// The number of this process, from 0.
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// Replaces each of the values by its sum over ranks, with the same bits on every rank. All ranks give
  /// equally many. Throws LostRank, and UsageError when the order does not suit size().
  virtual void sum(std::span<float> values, SumOrder order) = 0;
  /// Gives `mine`, any bytes, to all ranks; returns what each rank gave, by rank. Throws LostRank.
  virtual std::vector<std::string> agree(std::string_view mine) = 0;
};

/// A group of one: this process alone.
class OneProcess : public ProcessGroup {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  void sum(std::span<float>, SumOrder) override {}
  std::vector<std::string> agree(std::string_view mine) override { return {std::string(mine)}; }
};

}  // namespace mh
