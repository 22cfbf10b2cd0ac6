#ifdef MULTIHEAD_MPI
#include "multihead/distributed/mpi_group.h"

#include <fmt/format.h>
#include <mpi.h>
#include <sched.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <limits>
#include <thread>

#include "multihead/base/aligned.h"
#include "multihead/distributed/alarm.h"
#include "multihead/distributed/message.h"
#include "multihead/distributed/rank_watch.h"

namespace mh {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// Every call waits for its messages here, never inside of MPI: an Open MPI that waits for a dead rank may do so
// for ever.
class MpiGroup : public ProcessGroup {
 public:
  explicit MpiGroup(const JoinOptions& options)
      : deadline_(options.deadline), stuck_(options.stuck), tells_(options.lost != nullptr) {
    {
      const auto alarm = alarm_when("start");
      int provided = 0;
      MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    check(MPI_Comm_rank(MPI_COMM_WORLD, &rank_), "MPI_Comm_rank");
    check(MPI_Comm_size(MPI_COMM_WORLD, &size_), "MPI_Comm_size");
    const ProcessId here = this_process();
    MessageWriter mine;
    mine.add(std::string_view(here.machine)), mine.add(here.number), mine.add(here.started);
    std::vector<ProcessId> processes;
    for (const std::string& theirs : agree(mine.bytes())) {
      MessageReader reader(theirs);
      ProcessId process;
      process.machine = reader.text();
      process.number = reader.number<int64_t>();
      process.started = reader.number<int64_t>();
      // In a container of its own a process of this machine is not to be seen.
      if (state_of(process, here) == ProcessState::kEnded) process.started = 0;
      processes.push_back(process);
    }
    watch_ = std::make_unique<RankWatch>(std::move(processes), rank_, deadline_, options.lost);
  }

  ~MpiGroup() override {
    // With a rank that is lost MPI_Finalize() would wait for it. The launcher ends whoever is left.
    if (watch_) watch_->finish();
    if (lost_) return;
    const auto alarm = alarm_when("end");
    MPI_Finalize();
  }
  MpiGroup(const MpiGroup&) = delete;
  MpiGroup& operator=(const MpiGroup&) = delete;

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  void sum(std::span<float> values, SumOrder order) override {
    if (size_ == 1) return;
    // Between two ranks our own exchange is faster (docs/scaling.md), and there is only one order.
    if (order == SumOrder::kFastest && size_ > 2) return sum_by_mpi(values);
    if (!std::has_single_bit(static_cast<unsigned>(size_))) {
      throw UsageError(fmt::format("{} ranks: sums in a fixed order need 1, 2, 4, 8, ... ranks", size_));
    }
    sum_by_tree(values);
  }

  // A star: everybody gives to rank 0, which gives all to everybody. So rank 0 knows who is missing.
  std::vector<std::string> agree(std::string_view mine) override {
    MessageWriter all;
    if (rank_ == 0) {
      std::vector<uint64_t> sizes(static_cast<size_t>(size_), mine.size());
      std::vector<MPI_Request> requests;
      for (int r = 1; r < size_; ++r) {
        requests.push_back(receive(&sizes[static_cast<size_t>(r)], sizeof(uint64_t), r));
      }
      wait(requests, 1);
      std::vector<std::string> texts{std::string(mine)};
      for (int r = 1; r < size_; ++r) {
        texts.emplace_back(sizes[static_cast<size_t>(r)], '\0');
        receive_long(texts.back().data(), texts.back().size(), r);
      }
      for (const std::string& text : texts) all.add(std::string_view(text));
      const uint64_t length = all.bytes().size();
      requests.clear();
      for (int r = 1; r < size_; ++r) requests.push_back(send(&length, sizeof length, r));
      wait(requests, 1);
      for (int r = 1; r < size_; ++r) send_long(all.bytes().data(), length, r);
      return texts;
    }
    const uint64_t size = mine.size();
    uint64_t length = 0;
    wait(send(&size, sizeof size, 0), 0);
    send_long(mine.data(), size, 0);
    wait(receive(&length, sizeof length, 0), 0);
    std::string bytes(length, '\0');
    receive_long(bytes.data(), length, 0);
    MessageReader reader(bytes);
    std::vector<std::string> texts;
    while (!reader.empty()) texts.emplace_back(reader.text());
    MH_ASSERT(texts.size() == static_cast<size_t>(size_));
    return texts;
  }

 private:
  static constexpr int kTag = 7;
  static constexpr int kAnybody = -1;

  // MPI_Init and MPI_Finalize wait for all ranks. Before the start none knows of another one, so the lowest rank that is
  // left is the first to tell, and the launcher has ended the next one by then.
  std::unique_ptr<Alarm> alarm_when(const char* what) {
    if (!stuck_) return nullptr;
    const std::chrono::seconds later(watch_ ? 0 : 3 * std::min(launched_rank(), 10));
    return std::make_unique<Alarm>(deadline_ + later, [this, what] {
      std::string text = fmt::format("MPI did not {} on all {} ranks within {:g} s", what,
                                     launched_processes(), std::chrono::duration<double>(deadline_).count());
      if (watch_) {
        if (const auto stopped = watch_->stopped()) text = silent(*stopped) + kStopped;
        if (!watch_->leaves_first()) std::this_thread::sleep_for(milliseconds(2000));
      }
      stuck_(text);
    });
  }

  // "rank 2 (process 4711 on its machine) has not answered for 600 s"
  std::string silent(int rank) const {
    return fmt::format("{} has not answered for {:g} s",
                       watch_ && rank != kAnybody ? watch_->named(rank) : "a rank",
                       std::chrono::duration<double>(deadline_).count());
  }
  static constexpr const char* kStopped = ": it was stopped by a signal";

  void check(int code, const char* what) {
    if (code == MPI_SUCCESS) return;
    lost_ = true;
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    MPI_Error_string(code, text, &length);
    throw LostRank(fmt::format("MPI: {} failed: {}", what, text), LostRank::Speaks::kThisRank);
  }

  MPI_Request send(const void* bytes, size_t size, int to) {
    MPI_Request request = MPI_REQUEST_NULL;
    check(MPI_Isend(bytes, static_cast<int>(size), MPI_BYTE, to, kTag, MPI_COMM_WORLD, &request),
          "MPI_Isend");
    return request;
  }
  MPI_Request receive(void* bytes, size_t size, int from) {
    MPI_Request request = MPI_REQUEST_NULL;
    check(MPI_Irecv(bytes, static_cast<int>(size), MPI_BYTE, from, kTag, MPI_COMM_WORLD, &request),
          "MPI_Irecv");
    return request;
  }
  // MPI counts with an int.
  static constexpr size_t kMostBytes = size_t{1} << 30;
  void send_long(const char* bytes, size_t size, int to) {
    for (size_t at = 0; at < size; at += kMostBytes)
      wait(send(bytes + at, std::min(kMostBytes, size - at), to), to);
  }
  void receive_long(char* bytes, size_t size, int from) {
    for (size_t at = 0; at < size; at += kMostBytes)
      wait(receive(bytes + at, std::min(kMostBytes, size - at), from), from);
  }

  // Buckets: several are under way at once, and none is larger than what the second-level caches hold together.
  void sum_by_mpi(std::span<float> values) {
    constexpr size_t kBucket = size_t{1} << 20;
    std::vector<MPI_Request> requests;
    for (size_t at = 0; at < values.size(); at += kBucket) {
      const auto count = static_cast<int>(std::min(kBucket, values.size() - at));
      requests.emplace_back(MPI_REQUEST_NULL);
      check(MPI_Iallreduce(MPI_IN_PLACE, values.data() + at, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD,
                           &requests.back()),
            "MPI_Iallreduce");
    }
    wait(requests, kAnybody);
  }

  // Recursive doubling: after step k everybody has the sum of its 2^k neighbours. a + b = b + a, so both sides of
  // a pair have the same bits. While one bucket is added, the next one is under way.
  void sum_by_tree(std::span<float> values) {
    constexpr size_t kBucket = size_t{1} << 18;
    scratch_.resize(static_cast<int64_t>(2 * kBucket));
    for (int step = 1; step < size_; step *= 2) {
      const int partner = rank_ ^ step;
      MPI_Request receiving = MPI_REQUEST_NULL;
      std::vector<MPI_Request> sending;
      const auto bucket = [&](size_t at) {
        return values.subspan(at, std::min(kBucket, values.size() - at));
      };
      const auto begin = [&](size_t at) {
        float* to = scratch_.data() + (at / kBucket % 2) * kBucket;
        sending.push_back(send(values.data() + at, bucket(at).size_bytes(), partner));
        receiving = receive(to, bucket(at).size_bytes(), partner);
      };
      if (!values.empty()) begin(0);
      for (size_t at = 0; at < values.size(); at += kBucket) {
        wait(receiving, partner);
        wait(sending, partner);  // before its bucket changes
        sending.clear();
        if (at + kBucket < values.size()) begin(at + kBucket);
        const float* other = scratch_.data() + (at / kBucket % 2) * kBucket;
        float* own = values.data() + at;
        for (size_t i = 0; i < bucket(at).size(); ++i) own[i] += other[i];
      }
    }
  }

  void wait(MPI_Request request, int whom) {
    std::vector<MPI_Request> one{request};
    wait(one, whom);
  }

  // Until all have ended. `whom` is the rank that is waited for: kAnybody, or the first of several, one a request.
  void wait(std::vector<MPI_Request>& requests, int whom) {
    if (watch_ && watch_->given_up()) lose("this rank was stopped for too long", kAnybody, true);
    const auto start = Clock::now();
    auto looked = start;
    for (int64_t turn = 0;; ++turn) {
      int done = 0;
      check(MPI_Testall(static_cast<int>(requests.size()), requests.data(), &done, MPI_STATUSES_IGNORE),
            "MPI_Testall");
      if (done != 0) return;
      constexpr int64_t kTurns = 200;  // then this core may have something better to do
      if (turn < kTurns) continue;
      const auto now = Clock::now();
      if (now - start > milliseconds(20)) {
        std::this_thread::sleep_for(std::chrono::microseconds(200));
      } else {
        ::sched_yield();
      }
      if (now - looked < milliseconds(100)) continue;
      looked = now;
      if (const auto gone = watch_ ? watch_->ended() : std::nullopt)
        lose(watch_->named(*gone) + " has ended", *gone, tells_);
      if (now - start > deadline_) throw_late(requests, whom);
    }
  }

  // Before all have told who they are there is no watch, and only the lowest rank that is left tells.
  [[noreturn]] void lose(const std::string& what, int missing, bool told = false) {
    lost_ = true;
    if (watch_) watch_->leave(what, told);
    if (rank_ == (missing == 0 ? 1 : 0)) throw LostRank(what, LostRank::Speaks::kThisRank);
    std::this_thread::sleep_for(milliseconds(2000));  // then the launcher has ended this one
    throw LostRank(what, LostRank::Speaks::kAnotherRank);
  }

  [[noreturn]] void throw_late(const std::vector<MPI_Request>& requests, int whom) {
    int late = whom;
    // One request a rank: those that have ended were set to null.
    if (whom > 0 && requests.size() > 1) {
      for (size_t i = 0; i < requests.size(); ++i) {
        if (requests[i] != MPI_REQUEST_NULL) {
          late = whom + static_cast<int>(i);
          break;
        }
      }
    }
    const auto stopped = watch_ ? watch_->stopped() : std::nullopt;
    if (stopped) lose(silent(*stopped) + kStopped, *stopped);
    lose(silent(late), late);
  }

  const milliseconds deadline_;
  const std::function<void(const std::string&)> stuck_;
  const bool tells_;  // the watch does
  int rank_ = 0, size_ = 1;
  bool lost_ = false;
  std::unique_ptr<RankWatch> watch_;  // null until all have told who they are
  AlignedBuffer<float> scratch_;      // two buckets
};

}  // namespace

std::unique_ptr<ProcessGroup> join_mpi(const JoinOptions& options) {
  return std::make_unique<MpiGroup>(options);
}

}  // namespace mh
#endif
