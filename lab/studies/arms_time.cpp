// How long an update of each arm takes.
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <vector>

#include "lab/studies/arm_training.h"
#include "lab/studies/arms.h"
#include "lab/studies/lab.h"
#include "multihead/base/error.h"
#include "multihead/base/thread_pool.h"
#include "multihead/kernels/simd.h"

namespace mh {
namespace {

constexpr int kFirstUpdates = 2;  // they allocate memory, and do not count
constexpr int kRounds = 9;

}  // namespace

std::vector<double> ArmRunner::seconds_of_update(const std::vector<Arm>& arms) {
  const uint64_t seed = seeds().front();
  std::vector<UpdateTime> times;
  for (const Arm& arm : arms) times.push_back({arm.name, identity(arm, seed), 0});
  if (const auto kept = log_.find_times(times)) return *kept;
  if (options_.watcher.step)
    options_.watcher.step(fmt::format("{} arms, side by side: the time of an update", arms.size()));
  std::vector<std::unique_ptr<ArmTraining>> trainings;
  for (const Arm& arm : arms)
    trainings.push_back(std::make_unique<ArmTraining>(run_settings(arm, seed), config_of(arm, seed), train_));

  // Ratios to the first arm's time in the same round: the speed of the processor changes from round to round.
  std::vector<std::vector<double>> ratios(arms.size());
  std::vector<double> first;
  const auto round = [&](bool counts) {
    double time_of_first = 0;
    for (size_t i = 0; i < trainings.size(); ++i) {
      if (options_.watcher.stop && options_.watcher.stop())
        throw Interrupted("the study was stopped; runs that are done are kept");
      const double before = trainings[i]->seconds();
      trainings[i]->update();
      const double time = trainings[i]->seconds() - before;
      if (i == 0) time_of_first = time;
      if (counts) ratios[i].push_back(time / time_of_first);
    }
    if (counts) first.push_back(time_of_first);
  };
  // A task of its own keeps an update on one thread, as in prepare().
  parallel_for(2, [&](int64_t task) {
    if (task != 0) return;
    for (int r = 0; r < kFirstUpdates + kRounds; ++r) round(r >= kFirstUpdates);
  });
  std::vector<double> seconds;
  for (size_t i = 0; i < arms.size(); ++i) {
    // An arm that stands twice has one time, whatever the noise of the second measurement.
    const auto end = times.begin() + static_cast<ptrdiff_t>(i);
    const auto same = std::find_if(times.begin(), end,
                                   [&](const UpdateTime& t) { return t.run.all() == times[i].run.all(); });
    times[i].seconds = same != end ? same->seconds : lab::median(ratios[i]) * lab::median(first);
    seconds.push_back(times[i].seconds);
  }
  make_folder();
  log_.keep_times(times, std::string(dispatch_target()));
  return seconds;
}

}  // namespace mh
