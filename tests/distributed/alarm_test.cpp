#include "multihead/distributed/alarm.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>

namespace mh {
namespace {

using std::chrono::milliseconds;

TEST(Alarm, RingsAfterItsDeadline) {
  std::promise<void> rung;
  const Alarm alarm(milliseconds(1), [&] { rung.set_value(); });
  EXPECT_EQ(rung.get_future().wait_for(std::chrono::seconds(60)), std::future_status::ready);
}

TEST(Alarm, IsSilentWhenWhatItWatchesIsOver) {
  std::atomic<bool> rung = false;
  {
    const Alarm alarm(std::chrono::hours(1), [&] { rung = true; });
  }
  EXPECT_FALSE(rung);
}

}  // namespace
}  // namespace mh
