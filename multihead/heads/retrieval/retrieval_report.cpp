// What a report says of several trials.
#include "multihead/heads/retrieval/heads_retrieval.h"

namespace mh {
namespace {

/// The mean of what value() gives of the trials of this length and depth.
template <class Value>
double mean_of_trials(const RetrievalReport& found, std::optional<int32_t> length,
                      std::optional<double> depth, const Value& value) {
  double sum = 0, count = 0;
  for (const RetrievalTrial& trial : found.trials) {
    if ((length && trial.length != *length) || (depth && trial.depth != *depth)) continue;
    sum += value(trial);
    count += 1;
  }
  return sum / count;
}

}  // namespace

std::vector<RetrievalPlace> RetrievalReport::places() const {
  std::vector<RetrievalPlace> found;
  for (const RetrievalTrial& trial : trials) {
    if (trial.needle == 0)
      found.push_back({trial.length, trial.depth, exact(trial.length, trial.depth),
                       log_probability(trial.length, trial.depth)});
  }
  return found;
}

double RetrievalReport::exact(std::optional<int32_t> length, std::optional<double> depth) const {
  return mean_of_trials(*this, length, depth,
                        [](const RetrievalTrial& trial) { return trial.exact ? 1.0 : 0.0; });
}

double RetrievalReport::log_probability(std::optional<int32_t> length, std::optional<double> depth) const {
  return mean_of_trials(*this, length, depth,
                        [](const RetrievalTrial& trial) { return trial.log_probability; });
}

}  // namespace mh
