#include "multihead/kernels/attention_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>

#include "multihead/kernels/attention_decode.h"
#include "multihead/kernels/soft_cap.h"

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

constexpr int kLargestHead = 1024;
constexpr int kLargestClip = 1 << 20;
constexpr int64_t kTaskWork = 1 << 19;     // multiply-adds: some 10 microseconds
constexpr int64_t kTaskQueries = 512;      // of a long sequence: they share the copy of a chunk of keys
constexpr int64_t kCutQueries = 64;        // what a task of a long sequence has at least
constexpr int64_t kCutKeys = 128;          // the same for keys in the backward pass
constexpr int64_t kTaskNumbers = 1 << 15;  // of each of K, V, dK, dV that a task of the backward pass holds
constexpr int64_t kFewTasks = 32;          // below that, tasks of long sequences are made shorter

void check_layout(const char* caller, const char* name, const ConstMatrixView& view) {
  if (view.rows < 0 || (view.rows > 1 && view.stride < view.cols)) {
    throw ShapeError(
        fmt::format("{}: {} has {} rows, {} columns and stride {}; a stride must not be below the columns",
                    caller, name, view.rows, view.cols, view.stride));
  }
  if (view.rows > 0 && view.data == nullptr) {
    throw ShapeError(fmt::format("{}: {} has {} rows but no data", caller, name, view.rows));
  }
}

void check_matrix(const char* caller, const char* name, const ConstMatrixView& view, int64_t cols) {
  if (view.cols != cols) {
    throw ShapeError(
        fmt::format("{}: {} has {} columns, expected {} (heads x head size)", caller, name, view.cols, cols));
  }
  check_layout(caller, name, view);
}

void check_offsets(const char* caller, const char* name, std::span<const int32_t> offsets, int64_t rows) {
  if (offsets.empty() || offsets.front() != 0) {
    throw ShapeError(fmt::format("{}: {} must begin with 0", caller, name));
  }
  for (size_t i = 1; i < offsets.size(); ++i) {
    if (offsets[i] < offsets[i - 1]) {
      throw ShapeError(fmt::format("{}: {} fall from {} to {} at sequence {}; they must not", caller, name,
                                   offsets[i - 1], offsets[i], i - 1));
    }
  }
  if (offsets.back() != rows) {
    throw ShapeError(
        fmt::format("{}: {} end at {}, expected the {} rows there are", caller, name, offsets.back(), rows));
  }
}

void check_size(const char* caller, const char* name, int size) {
  if (size < 1 || size > kLargestHead) {
    throw ShapeError(fmt::format("{}: {} is {}, expected 1 to {}", caller, name, size, kLargestHead));
  }
}

void check_heads(const char* caller, const char* name, int heads, int of) {
  if (heads < 1 || of % heads != 0) {
    throw ShapeError(
        fmt::format("{}: {} is {}, expected a divisor of the {} heads", caller, name, heads, of));
  }
}

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

void check_bias(const AttentionInputs& in, const char* caller) {
  const AttentionBias& bias = in.bias;
  const auto heads = static_cast<size_t>(in.heads);
  const auto check_clip = [&](const char* name, int clip) {
    if (clip < 0 || clip > kLargestClip) {
      throw ShapeError(fmt::format("{}: {} is {}, expected 0 to {}", caller, name, clip, kLargestClip));
    }
  };
  if (!bias.slopes.empty() && bias.slopes.size() != heads) {
    throw ShapeError(fmt::format("{}: bias.slopes has {} numbers, expected one for each of {} heads", caller,
                                 bias.slopes.size(), in.heads));
  }
  if (!bias.by_distance.empty()) {
    check_clip("bias.distance_clip", bias.distance_clip);
    const int64_t distances = 2 * int64_t{bias.distance_clip} + 1;
    if (bias.distance_columns < 1 || (bias.buckets.empty() && bias.distance_columns != distances)) {
      throw ShapeError(fmt::format("{}: bias.distance_columns is {}, expected {} or buckets", caller,
                                   bias.distance_columns, distances));
    }
    if (bias.by_distance.size() != heads * static_cast<size_t>(bias.distance_columns)) {
      throw ShapeError(fmt::format("{}: bias.by_distance has {} numbers, expected {} heads x {} columns",
                                   caller, bias.by_distance.size(), in.heads, bias.distance_columns));
    }
    if (!bias.buckets.empty() && static_cast<int64_t>(bias.buckets.size()) != distances) {
      throw ShapeError(fmt::format("{}: bias.buckets has {} columns, expected one for each of {} distances",
                                   caller, bias.buckets.size(), distances));
    }
    for (const int32_t bucket : bias.buckets) {
      if (bucket < 0 || bucket >= bias.distance_columns) {
        throw ShapeError(fmt::format("{}: bias.buckets holds {}, expected 0 to {}", caller, bucket,
                                     bias.distance_columns - 1));
      }
    }
  }
  if (!bias.elements.empty() && static_cast<int64_t>(bias.elements.size()) != attention_weights_size(in)) {
    throw ShapeError(fmt::format("{}: bias.elements has {} numbers, expected the {} there are weights",
                                 caller, bias.elements.size(), attention_weights_size(in)));
  }
  if (bias.by_query.cols != 0) {
    check_clip("bias.query_clip", bias.query_clip);
    if (bias.by_query.rows != in.q.rows) {
      throw ShapeError(fmt::format("{}: bias.by_query has {} rows, expected the {} of q", caller,
                                   bias.by_query.rows, in.q.rows));
    }
    check_matrix(caller, "bias.by_query", bias.by_query, int64_t{in.heads} * (2 * bias.query_clip + 1));
  }
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

void check_attention(const AttentionInputs& in, const char* caller) {
  if (in.heads < 1 || in.heads >= 1 << 24) {
    throw ShapeError(fmt::format("{}: heads is {}, expected 1 to {}", caller, in.heads, (1 << 24) - 1));
  }
  check_heads(caller, "key_heads", in.key_heads, in.heads);
  check_heads(caller, "value_heads", in.value_heads, in.heads);
  check_size(caller, "d_key", in.d_key);
  check_size(caller, "d_value", in.d_value);
  check_matrix(caller, "q", in.q, int64_t{in.heads} * in.d_key);
  check_matrix(caller, "k", in.k, int64_t{in.key_heads} * in.d_key);
  check_matrix(caller, "v", in.v, int64_t{in.value_heads} * in.d_value);
  if (in.k.rows != in.v.rows) {
    throw ShapeError(fmt::format("{}: v has {} rows, expected the {} of k", caller, in.v.rows, in.k.rows));
  }
  check_offsets(caller, "query_offsets", in.query_offsets, in.q.rows);
  check_offsets(caller, "key_offsets", in.key_offsets,
                in.key_rows.empty() ? in.k.rows : static_cast<int64_t>(in.key_rows.size()));
  if (in.key_offsets.size() != in.query_offsets.size()) {
    throw ShapeError(fmt::format("{}: key_offsets describe {} sequences, expected the {} of query_offsets",
                                 caller, in.key_offsets.size() - 1, in.query_offsets.size() - 1));
  }
  uint32_t largest = 0;  // as unsigned, a negative row is a large one
  for (const int32_t row : in.key_rows) largest = std::max(largest, static_cast<uint32_t>(row));
  if (!in.key_rows.empty() && largest >= in.k.rows) {
    throw ShapeError(fmt::format("{}: key_rows holds row {}, expected 0 to {}", caller,
                                 static_cast<int32_t>(largest), in.k.rows - 1));
  }
  if (!std::isfinite(in.scale))
    throw UsageError(fmt::format("{}: scale is {}, not a number", caller, in.scale));
  if (in.soft_cap && !is_soft_cap(*in.soft_cap))
    throw UsageError(fmt::format("{}: soft_cap is {}, expected a positive number", caller, *in.soft_cap));
  if (in.gate.data != nullptr) {
    check_gate(caller, "gate", in.gate, static_cast<int64_t>(in.query_offsets.size()) - 1, in.heads);
  }
  if (!(in.dropout.rate >= 0 && in.dropout.rate < 1 && in.dropout.threshold() < 65536)) {
    throw UsageError(fmt::format("{}: dropout.rate {} is not in [0, 1)", caller, in.dropout.rate));
  }
  if (in.dropout.active() && in.dropout.sentences.size() + 1 != in.query_offsets.size()) {
    throw ShapeError(
        fmt::format("{}: dropout.sentences has {} numbers, expected one for each of {} sequences", caller,
                    in.dropout.sentences.size(), in.query_offsets.size() - 1));
  }
  if (in.mask.kind() == Mask::Kind::kDense) {
    int32_t longest = 0;
    for (size_t s = 0; s + 1 < in.key_offsets.size(); ++s) {
      longest = std::max(longest, in.key_offsets[s + 1] - in.key_offsets[s]);
    }
    if (in.mask.bits().words_per_row < 0 || in.mask.bits().words_per_row * 64 < longest) {
      throw ShapeError(fmt::format("{}: mask has {} words in a row, expected at least {} for {} keys", caller,
                                   in.mask.bits().words_per_row, (longest + 63) / 64, longest));
    }
  }
  check_bias(in, caller);
}

void check_gate(const char* caller, const char* name, const ConstMatrixView& view, int64_t sequences,
                int64_t heads) {
  if ((view.rows != 1 && view.rows != sequences) || view.cols != heads) {
    throw ShapeError(fmt::format("{}: {} is [{},{}], expected [{},{}], or [1,{}] for all sequences", caller,
                                 name, view.rows, view.cols, sequences, heads, heads));
  }
  check_layout(caller, name, view);
}

void check_result(const char* caller, const char* name, const ConstMatrixView& view, int64_t rows,
                  int64_t cols) {
  if (view.rows != rows || view.cols != cols) {
    throw ShapeError(
        fmt::format("{}: {} is [{},{}], expected [{},{}]", caller, name, view.rows, view.cols, rows, cols));
  }
  check_layout(caller, name, view);
}

bool attention_decodes(const AttentionInputs& in, int64_t s) {
  const auto at = static_cast<size_t>(s);
  const int32_t queries = in.query_offsets[at + 1] - in.query_offsets[at];
  return 0 < queries && queries <= kDecodeQueries &&
         in.key_offsets[at + 1] - in.key_offsets[at] >= kDecodeKeys && !in.dropout.active();
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
