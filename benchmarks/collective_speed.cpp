// The time of a group's calls: mpirun -n 2 collective_speed [--reproducible]. Rank 0 prints a line of JSON for each
// number of floats: medians in seconds of sum() and, for 0 floats, of agree() with 100 bytes.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "benchmarks/beside_peer.h"
#include "multihead/distributed/join_processes.h"

namespace {

double median_seconds(int calls, const auto& call) {
  std::vector<double> seconds;
  for (int i = 0; i < calls; ++i) {
    const mh::Stopwatch watch;
    call();
    seconds.push_back(watch.seconds());
  }
  return mh::median(std::move(seconds));
}

int run(int argc, char** argv) {
  const bool tree = argc > 1 && std::string(argv[1]) == "--reproducible";
  const auto order = tree ? mh::SumOrder::kFixedTree : mh::SumOrder::kFastest;
  const auto group = mh::join_processes();
  const auto say = [&](int64_t floats, double seconds) {
    if (group->rank() != 0) return;
    fmt::print("{{\"ranks\": {}, \"floats\": {}, \"seconds\": {:.3g}}}\n", group->size(), floats, seconds);
    std::fflush(stdout);
  };
  const std::string text(100, 'x');
  say(0, median_seconds(201, [&] { group->agree(text); }));
  for (int64_t floats = 1024; floats <= (int64_t{1} << 26); floats *= 8) {
    std::vector<float> values(static_cast<size_t>(floats), 1e-3f);
    const int calls = static_cast<int>(std::clamp<int64_t>((int64_t{1} << 24) / floats, 3, 101));
    say(floats, median_seconds(calls, [&] { group->sum(values, order); }));
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
