#include "multihead/kernels/attention_plan.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "multihead/kernels/attention_decode.h"

namespace mh {

float attention_scale(int d_key) {
  return static_cast<float>(1.0 / std::sqrt(static_cast<double>(d_key)));
}

int64_t attention_weights_size(const AttentionInputs& inputs) {
  int64_t size = 0;
  for (size_t s = 0; s + 1 < inputs.query_offsets.size() && s + 1 < inputs.key_offsets.size(); ++s) {
    size += int64_t{inputs.query_offsets[s + 1] - inputs.query_offsets[s]} *
            (inputs.key_offsets[s + 1] - inputs.key_offsets[s]);
  }
  return size * inputs.heads;
}

namespace detail {
namespace {

constexpr int64_t kTaskWork = 1 << 19;     // multiply-adds: some 10 microseconds
constexpr int64_t kTaskQueries = 512;      // of a long sequence: they share the copy of a chunk of keys
constexpr int64_t kCutQueries = 64;        // what a task of a long sequence has at least
constexpr int64_t kCutKeys = 128;          // the same for keys in the backward pass
constexpr int64_t kTaskNumbers = 1 << 15;  // of each of K, V, dK, dV that a task of the backward pass holds
constexpr int64_t kFewTasks = 32;          // below that, tasks of long sequences are made shorter

/// A `pieces`th part of n, as a multiple of `unit` not above `most`.
int64_t share_of(int64_t n, int64_t pieces, int64_t unit, int64_t most) {
  return std::clamp((n / pieces + unit - 1) / unit * unit, unit, most);
}

/// Short sequences are gathered: gathered(begin, end). Of a longer one, long_one(sequence, heads of a task,
/// work of a head); `group` heads stay together. Those that skip(sequence) are left out.
template <class Skip, class Gathered, class LongOne>
void for_each_share(const AttentionInputs& in, int group, Skip skip, Gathered gathered, LongOne long_one) {
  const auto sequences = static_cast<int32_t>(in.query_offsets.size()) - 1;
  int32_t begin = 0;
  int64_t work = 0;
  const auto finish = [&](int32_t end) {
    if (begin < end) gathered(begin, end);
    begin = end;
    work = 0;
  };
  for (int32_t s = 0; s < sequences; ++s) {
    if (skip(s)) {
      finish(s);
      begin = s + 1;
      continue;
    }
    const auto at = static_cast<size_t>(s);
    const int64_t queries = in.query_offsets[at + 1] - in.query_offsets[at];
    const int64_t keys = in.key_offsets[at + 1] - in.key_offsets[at];
    const int64_t of_head = ((queries + 15) / 16 * 16 * (keys + 4) + keys) * (in.d_key + in.d_value) + 256;
    if (of_head * in.heads <= kTaskWork) {
      if (work + of_head * in.heads > kTaskWork) finish(s);
      work += of_head * in.heads;
      continue;
    }
    finish(s);
    begin = s + 1;
    const auto groups =
        static_cast<int>(std::clamp<int64_t>(kTaskWork / (of_head * group), 1, in.heads / group));
    long_one(s, groups * group, of_head);
  }
  finish(sequences);
}

}  // namespace

float bias_at_distance(const AttentionBias& bias, int head, int64_t distance) {
  float sum = 0;
  if (!bias.slopes.empty())
    sum -= bias.slopes[static_cast<size_t>(head)] * static_cast<float>(std::abs(distance));
  if (!bias.by_distance.empty()) {
    sum += bias.by_distance[static_cast<size_t>(int64_t{head} * bias.distance_columns +
                                                bias_column(bias, distance))];
  }
  return sum;
}

const int64_t* attention_weight_offsets(const AttentionInputs& in) {
  thread_local std::vector<int64_t> offsets;
  offsets.assign(1, 0);
  for (size_t s = 0; s + 1 < in.query_offsets.size(); ++s) {
    offsets.push_back(offsets.back() + in.heads * int64_t{in.query_offsets[s + 1] - in.query_offsets[s]} *
                                           (in.key_offsets[s + 1] - in.key_offsets[s]));
  }
  return offsets.data();
}

bool attention_decodes(const AttentionInputs& in, int64_t s) {
  const auto at = static_cast<size_t>(s);
  const int32_t queries = in.query_offsets[at + 1] - in.query_offsets[at];
  return 0 < queries && queries <= kDecodeQueries &&
         in.key_offsets[at + 1] - in.key_offsets[at] >= kDecodeKeys && !in.dropout.active() && can_stream(in);
}

const std::vector<AttentionTask>& attention_tasks(const AttentionInputs& in, bool all) {
  thread_local std::vector<AttentionTask> tasks;  // grown once, so that a call allocates nothing
  tasks.clear();
  const auto sequences = static_cast<int64_t>(in.query_offsets.size()) - 1;
  for_each_share(
      in, 1, [&](int32_t s) { return !all && attention_decodes(in, s); },
      [&](int32_t begin, int32_t end) {
        tasks.push_back({begin, end, 0, in.heads, 0, std::numeric_limits<int64_t>::max()});
      },
      [&](int32_t s, int heads, int64_t of_head) {
        const int64_t queries =
            in.query_offsets[static_cast<size_t>(s) + 1] - in.query_offsets[static_cast<size_t>(s)];
        const int64_t pieces = std::max<int64_t>(1, kFewTasks / (sequences * in.heads));
        const int64_t rows = of_head <= kTaskWork ? std::max<int64_t>(queries, 1)
                                                  : share_of(queries, pieces, kCutQueries, kTaskQueries);
        for (int h = 0; h < in.heads; h += heads) {
          for (int64_t q = 0; q < std::max<int64_t>(queries, 1); q += rows) {
            tasks.push_back({s, s + 1, h, std::min(in.heads, h + heads), q, std::min(queries, q + rows)});
          }
        }
      });
  return tasks;
}

const BackwardPlan& backward_plan(const AttentionInputs& in) {
  thread_local BackwardPlan plan;
  plan.tasks.clear();
  plan.parts = plan.turns = 0;
  const auto sequences = static_cast<int64_t>(in.query_offsets.size()) - 1;
  const int groups = std::gcd(in.key_heads, in.value_heads);
  for_each_share(
      in, in.heads / groups, [](int32_t) { return false; },
      [&](int32_t begin, int32_t end) {
        plan.tasks.push_back(
            {begin, end, 0, in.heads, 0, std::numeric_limits<int64_t>::max(), plan.parts, -1});
        plan.parts += end - begin;
      },
      [&](int32_t s, int heads, int64_t) {
        const auto at = static_cast<size_t>(s);
        const int64_t queries = in.query_offsets[at + 1] - in.query_offsets[at];
        const int64_t keys = in.key_offsets[at + 1] - in.key_offsets[at];
        const int64_t pieces = std::max<int64_t>(1, kFewTasks / 2 / (sequences * groups));
        const int64_t most =
            std::max(kTaskNumbers / std::max(in.d_key, in.d_value) / kCutKeys, int64_t{1}) * kCutKeys;
        const int64_t size = share_of(keys, pieces, kCutKeys, most);
        const bool several = keys > size;
        for (int64_t j = 0; j < std::max<int64_t>(keys, 1); j += size, ++plan.parts) {
          for (int h = 0; h < in.heads; h += heads) {
            plan.tasks.push_back({s, s + 1, h, std::min(in.heads, h + heads), j, j + size, plan.parts,
                                  several ? plan.turns : -1});
          }
        }
        if (several) plan.turns += in.heads * ((queries + kBackwardQueries - 1) / kBackwardQueries);
      });
  return plan;
}

}  // namespace detail
}  // namespace mh
