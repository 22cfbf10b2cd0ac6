#include "multihead/train/gradient_exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <string>

#include "multihead/base/error.h"
#include "multihead/distributed/agreement.h"
#include "multihead/distributed/message.h"

namespace mh {
namespace {

void add_sums(MessageWriter& message, const LossSums& sums) {
  message.add(sums.smoothed_loss), message.add(sums.negative_log_likelihood);
  message.add(sums.head_similarity), message.add(sums.target_tokens);
  message.add(sums.source_tokens), message.add(sums.sentences);
}

LossSums read_sums(MessageReader& reader) {
  LossSums sums;
  sums.smoothed_loss = reader.number<double>(), sums.negative_log_likelihood = reader.number<double>();
  sums.head_similarity = reader.number<double>(), sums.target_tokens = reader.number<int64_t>();
  sums.source_tokens = reader.number<int64_t>(), sums.sentences = reader.number<int64_t>();
  return sums;
}

}  // namespace

GradientExchange::GradientExchange(GradientBuffer& gradients, ProcessGroup& group, bool reproducible)
    : gradients_(gradients), group_(group) {
  const auto ranks = static_cast<size_t>(group.size());
  if (reproducible && kFixedShards % ranks != 0) {
    throw UsageError(
        fmt::format("`reproducible` shares {} shards of every update; start 1, 2 or {} ranks, not {}",
                    kFixedShards, kFixedShards, ranks));
  }
  shards_ = reproducible ? kFixedShards : ranks;
  own_ = shards_ / ranks;
  order_ = reproducible ? SumOrder::kFixedTree : SumOrder::kFastest;
}

void GradientExchange::finish_shard(const LossSums& sums) {
  sums_.push_back(sums);
  const std::span<float> here = gradients_.all();
  // As a binary counter: shard 3 = 0b11 completes a pair of shards, and then a pair of pairs.
  for (size_t number = sums_.size() - 1; number % 2 == 1; number /= 2) {
    const std::vector<float>& left = left_halves_.back();
    for (size_t i = 0; i < here.size(); ++i) here[i] = left[i] + here[i];
    left_halves_.pop_back();
  }
  if (sums_.size() == own_) return;
  left_halves_.emplace_back(here.begin(), here.end());
  std::fill(here.begin(), here.end(), 0.0f);
}

LossSums GradientExchange::finish_update(double seconds, RankTimes& times) {
  const auto start = std::chrono::steady_clock::now();
  LossSums all;
  if (group_.size() == 1) {
    for (const LossSums& sums : sums_) all += sums;
  } else {
    MessageWriter mine;
    mine.add(seconds);
    for (const LossSums& sums : sums_) add_sums(mine, sums);
    const size_t parameters = gradients_.views().size();
    for (size_t i = 0; i < parameters; ++i) mine.add(static_cast<char>(gradients_.reached(i)));
    std::vector<char> reached(parameters, 0);
    times.slowest_tokens_per_second = std::numeric_limits<double>::infinity();
    double all_seconds = 0;
    for (const std::string& theirs : agree_or_fail(group_, mine.bytes())) {
      MessageReader reader(theirs);
      const auto their_seconds = reader.number<double>();
      int64_t tokens = 0;
      for (size_t shard = 0; shard < own_; ++shard) {
        const LossSums sums = read_sums(reader);
        all += sums;
        tokens += sums.target_tokens;
      }
      for (char& mark : reached) mark = static_cast<char>(reader.number<char>() | mark);
      all_seconds += their_seconds;
      if (tokens == 0) continue;  // fewer sentences than ranks
      times.slowest_tokens_per_second = std::min(times.slowest_tokens_per_second,
                                                 static_cast<double>(tokens) / std::max(their_seconds, 1e-9));
    }
    for (size_t i = 0; i < parameters; ++i) {
      if (reached[i] != 0) gradients_.mark_reached(i);
    }
    group_.sum(gradients_.all(), order_);
    const double until_now = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    times.waiting_seconds = std::max(0.0, seconds + until_now - all_seconds / group_.size());
  }
  sums_.clear();
  return all;
}

void GradientExchange::spread(const std::function<void(size_t, MatrixView)>& give,
                              const std::function<void(size_t, ConstMatrixView)>& take) {
  const std::vector<GradientBuffer::View>& views = gradients_.views();
  any_rank(group_, false);  // a rank that has failed since the last agreement tells here
  for (size_t i = 0; i < views.size(); ++i) give(i, views[i].values);
  group_.sum(gradients_.all(), SumOrder::kFastest);
  for (size_t i = 0; i < views.size(); ++i) take(i, views[i].values);
  std::fill(gradients_.all().begin(), gradients_.all().end(), 0.0f);
}

}  // namespace mh
