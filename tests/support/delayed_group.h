// A group behind a slow network or a slow rank: every call takes longer.
#pragma once

#include <chrono>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "multihead/distributed/process_group.h"

namespace mh {

class DelayedGroup : public ProcessGroup {
 public:
  struct Delay {
    std::chrono::microseconds of_call{0};
    double seconds_of_float = 0;
  };
  /// REQUIRES: the group outlives this.
  DelayedGroup(ProcessGroup& group, const Delay& delay) : group_(group), delay_(delay) {}

  int rank() const override { return group_.rank(); }
  int size() const override { return group_.size(); }
  void sum(std::span<float> values, SumOrder order) override {
    wait(static_cast<double>(values.size()) * delay_.seconds_of_float);
    group_.sum(values, order);
  }
  std::vector<std::string> agree(std::string_view mine) override {
    wait(0);
    return group_.agree(mine);
  }

 private:
  void wait(double seconds) const {
    std::this_thread::sleep_for(delay_.of_call + std::chrono::duration<double>(seconds));
  }

  ProcessGroup& group_;
  Delay delay_;
};

}  // namespace mh
