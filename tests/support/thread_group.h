// Threads of this process as the ranks of a group: what several processes do, without MPI.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "multihead/distributed/process_group.h"

namespace mh {

class ThreadGroup {
 public:
  explicit ThreadGroup(int size)
      : size_(size), spans_(static_cast<size_t>(size)), texts_(static_cast<size_t>(size)) {}

  /// Calls body(rank's group) on a thread for each rank; returns what each threw, null for nothing.
  std::vector<std::exception_ptr> outcomes(const std::function<void(ProcessGroup&)>& body) {
    std::vector<std::exception_ptr> thrown(static_cast<size_t>(size_));
    std::vector<std::thread> threads;
    for (int rank = 0; rank < size_; ++rank) {
      threads.emplace_back([&, rank] {
        Member member(*this, rank);
        try {
          body(member);
        } catch (...) {
          thrown[static_cast<size_t>(rank)] = std::current_exception();
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    return thrown;
  }
  /// The same; throws the first of what they threw.
  void run(const std::function<void(ProcessGroup&)>& body) {
    for (const std::exception_ptr& thrown : outcomes(body)) {
      if (thrown) std::rethrow_exception(thrown);
    }
  }
  /// The numbers of every sum so far.
  const std::vector<std::vector<float>>& sums() const { return sums_; }

 private:
  class Member : public ProcessGroup {
   public:
    Member(ThreadGroup& all, int rank) : all_(all), rank_(rank) {}
    int rank() const override { return rank_; }
    int size() const override { return all_.size_; }
    void sum(std::span<float> values, SumOrder order) override {
      all_.spans_[static_cast<size_t>(rank_)] = values;
      all_.meet([&] { all_.sums_.push_back(all_.summed(order)); });
      const std::vector<float> result = all_.sums_.back();
      all_.meet([] {});
      std::copy(result.begin(), result.end(), values.begin());
    }
    std::vector<std::string> agree(std::string_view mine) override {
      all_.texts_[static_cast<size_t>(rank_)] = mine;
      all_.meet([] {});
      std::vector<std::string> result = all_.texts_;
      all_.meet([] {});
      return result;
    }

   private:
    ThreadGroup& all_;
    int rank_;
  };

  std::vector<float> summed(SumOrder order) const {
    std::vector<std::vector<float>> parts;
    for (const auto& span : spans_) parts.emplace_back(span.begin(), span.end());
    const auto add = [](std::vector<float>& to, const std::vector<float>& from) {
      for (size_t i = 0; i < to.size(); ++i) to[i] += from.at(i);
    };
    if (order == SumOrder::kFastest) {  // from the last one, which is not how a tree rounds
      for (size_t r = parts.size() - 1; r > 0; --r) add(parts[r - 1], parts[r]);
    }
    for (size_t step = 1; order == SumOrder::kFixedTree && step < parts.size(); step *= 2) {
      for (size_t r = 0; r + step < parts.size(); r += 2 * step) add(parts[r], parts[r + step]);
    }
    return parts[0];
  }

  // Returns when all threads are here; the last one to come calls `finish` before.
  void meet(const std::function<void()>& finish) {
    std::unique_lock lock(mutex_);
    const int64_t meeting = meeting_;
    if (++here_ == size_) {
      finish();
      here_ = 0;
      ++meeting_;
      all_here_.notify_all();
      return;
    }
    if (!all_here_.wait_for(lock, std::chrono::seconds(20), [&] { return meeting_ != meeting; }))
      throw LostRank("a thread did not come", LostRank::Speaks::kThisRank);
  }

  const int size_;
  std::mutex mutex_;
  std::condition_variable all_here_;
  int here_ = 0;
  int64_t meeting_ = 0;
  std::vector<std::span<float>> spans_;
  std::vector<std::string> texts_;
  std::vector<std::vector<float>> sums_;
};

}  // namespace mh
