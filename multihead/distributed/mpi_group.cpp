#ifdef MULTIHEAD_MPI
#include "multihead/distributed/mpi_group.h"

#include <fmt/format.h>
#include <mpi.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <functional>
#include <limits>
#include <stop_token>
#include <thread>

#include "multihead/base/aligned.h"
#include "multihead/distributed/message.h"
#include "multihead/distributed/watched_processes.h"

namespace mh {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// Every call waits for its messages here, never inside of MPI: an Open MPI that waits for a dead rank may do so
// for ever.
class MpiGroup : public ProcessGroup {
 public:
  explicit MpiGroup(const JoinOptions& options) : deadline_(options.deadline), tell_(options.lost) {
    int provided = 0;
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    check(MPI_Comm_rank(MPI_COMM_WORLD, &rank_), "MPI_Comm_rank");
    check(MPI_Comm_size(MPI_COMM_WORLD, &size_), "MPI_Comm_size");
    here_ = this_process();
    MessageWriter mine;
    mine.add(std::string_view(here_.machine)), mine.add(here_.number), mine.add(here_.started);
    std::vector<ProcessId> known;
    for (const std::string& theirs : agree(mine.bytes())) {
      MessageReader reader(theirs);
      ProcessId process;
      process.machine = reader.text();
      process.number = reader.number<int64_t>();
      process.started = reader.number<int64_t>();
      // In a container of its own a process of this machine is not to be seen.
      if (state_of(process, here_) == ProcessState::kEnded) process.started = 0;
      known.push_back(process);
    }
    processes_ = std::move(known);
    if (tell_) watch_ = std::jthread([this](const std::stop_token& stop) { watch(stop); });
  }

  ~MpiGroup() override {
    // With a rank that is lost MPI_Finalize() would wait for it. The launcher ends whoever is left.
    finishing_ = true;
    if (watch_.joinable()) watch_.request_stop(), watch_.join();
    if (!lost_) MPI_Finalize();
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

  static constexpr int kAnybody = -1;

  void wait(MPI_Request request, int whom) {
    std::vector<MPI_Request> one{request};
    wait(one, whom);
  }

  // Until all have ended. `whom` is the rank that is waited for: kAnybody, or the first of several, one a request.
  void wait(std::vector<MPI_Request>& requests, int whom) {
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
      throw_if_one_has_ended();
      if (now - start > deadline_) throw_late(requests, whom);
    }
  }

  // Whether this is the lowest rank that is left: it tells the user.
  bool speaks(int missing) const {
    int speaker = 0;
    while (speaker < rank_ && (speaker == missing || ended(speaker))) ++speaker;
    return speaker == rank_;
  }

  // A launcher ends everybody soon after one has ended, perhaps in the middle of a long update. So this thread looks
  // and tells; the other one throws when it next waits for somebody.
  void watch(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      const auto before = Clock::now();
      std::this_thread::sleep_for(milliseconds(100));
      if (Clock::now() - before > deadline_ / 2)
        return;  // this rank was stopped, and the others have told of it
      for (int r = 0; r < size_ && !stop.stop_requested(); ++r) {
        if (r == rank_ || !ended(r)) continue;
        if (!finishing_ && speaks(r)) tell_(fmt::format("{} has ended", named(r)));
        return;
      }
    }
  }

  // The others give the one that speaks time to.
  [[noreturn]] void lose(const std::string& what, int missing, bool told = false) {
    lost_ = true;
    if (!told && speaks(missing)) throw LostRank(what, LostRank::Speaks::kThisRank);
    std::this_thread::sleep_for(milliseconds(300));
    throw LostRank(what, LostRank::Speaks::kAnotherRank);
  }

  bool ended(int rank) const {
    return !processes_.empty() &&
           state_of(processes_[static_cast<size_t>(rank)], here_) == ProcessState::kEnded;
  }
  std::string named(int rank) const {
    const ProcessId& process = processes_[static_cast<size_t>(rank)];
    return fmt::format("rank {} (process {} on {})", rank, process.number, process.machine);
  }

  void throw_if_one_has_ended() {
    for (int r = 0; r < static_cast<int>(processes_.size()); ++r) {
      if (r != rank_ && ended(r)) lose(fmt::format("{} has ended", named(r)), r, tell_ != nullptr);
    }
  }

  [[noreturn]] void throw_late(const std::vector<MPI_Request>& requests, int whom) {
    const double seconds = std::chrono::duration<double>(deadline_).count();
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
    std::string stopped;
    for (int r = 0; r < static_cast<int>(processes_.size()); ++r) {
      if (r == rank_ || state_of(processes_[static_cast<size_t>(r)], here_) != ProcessState::kStopped)
        continue;
      late = r;
      stopped = ": it was stopped by a signal";
    }
    if (processes_.empty() || late == kAnybody)
      lose(fmt::format("a rank has not answered for {:g} s", seconds), late);
    lose(fmt::format("{} has not answered for {:g} s{}", named(late), seconds, stopped), late);
  }

  const milliseconds deadline_;
  const std::function<void(const std::string&)> tell_;
  int rank_ = 0, size_ = 1;
  bool lost_ = false;
  ProcessId here_;
  std::vector<ProcessId> processes_;     // by rank; empty until all have told
  AlignedBuffer<float> scratch_;         // two buckets
  std::atomic<bool> finishing_ = false;  // then ranks end because they are done
  std::jthread watch_;
};

}  // namespace

std::unique_ptr<ProcessGroup> join_mpi(const JoinOptions& options) {
  return std::make_unique<MpiGroup>(options);
}

}  // namespace mh
#endif
