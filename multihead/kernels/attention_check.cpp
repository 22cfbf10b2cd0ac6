#include "multihead/kernels/attention_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <string>
#include <tuple>

#include "multihead/kernels/soft_cap.h"

namespace mh::detail {
namespace {

constexpr int kLargestHead = 1024;
constexpr int64_t kLargestStride = int64_t{1} << 48;
constexpr int kLargestClip = 1 << 20;
constexpr int64_t kMostVectorColumns = 1 << 26;  // 16 rows of them are counted in 32 bits

template <class T>
void check_layout(const char* caller, const char* name, const BasicMatrixView<T>& view) {
  if (view.rows < 0 || (view.rows > 1 && view.stride < view.cols)) {
    throw ShapeError(
        fmt::format("{}: {} has {} rows, {} columns and stride {}; a stride must not be below the columns",
                    caller, name, view.rows, view.cols, view.stride));
  }
  if (view.rows > 0 && view.data == nullptr) {
    throw ShapeError(fmt::format("{}: {} has {} rows but no data", caller, name, view.rows));
  }
}

template <class T>
void check_columns(const char* caller, const char* name, const BasicMatrixView<T>& view, int64_t cols) {
  if (view.cols != cols) {
    throw ShapeError(
        fmt::format("{}: {} has {} columns, expected {} (heads x head size)", caller, name, view.cols, cols));
  }
}
template <class T>
void check_matrix(const char* caller, const char* name, const BasicMatrixView<T>& view, int64_t cols) {
  check_columns(caller, name, view, cols);
  check_layout(caller, name, view);
}
/// The part that can be checked before the offsets are.
void check_heads_view(const char* caller, const char* name, const ConstHeadsView& view, int64_t heads,
                      int64_t size) {
  check_columns(caller, name, view, heads * size);
  if (view.rows < 0 || (view.plain(size))) check_layout(caller, name, view);
}

/// An axis along which numbers lie in memory.
struct Axis {
  const char* name;
  int64_t stride, count;
};

/// Places along three axes must not overlap: from the smallest stride on, each reaches beyond all before it.
void check_strides(const char* caller, const std::string& name, int64_t size, std::array<Axis, 3> axes) {
  std::sort(axes.begin(), axes.end(), [](const Axis& a, const Axis& b) { return a.stride < b.stride; });
  int64_t reach = size;
  for (const Axis& axis : axes) {
    if (axis.count <= 1) continue;
    if (axis.stride < reach) {
      throw ShapeError(
          fmt::format("{}: {} has a stride of {} for each {}, expected at least {}; places must not overlap",
                      caller, name, axis.stride, axis.name, reach));
    }
    if (axis.stride > kLargestStride / axis.count) {
      throw ShapeError(fmt::format("{}: {} has a stride of {} for each of {} {}s, which is too large", caller,
                                   name, axis.stride, axis.count, axis.name));
    }
    reach += axis.stride * (axis.count - 1);
  }
}

int64_t longest(std::span<const int32_t> offsets) {
  int32_t length = 0;
  for (size_t s = 0; s + 1 < offsets.size(); ++s) length = std::max(length, offsets[s + 1] - offsets[s]);
  return length;
}

/// The strides of a view whose heads are not side by side or whose sequences are not end to end. REQUIRES: good offsets.
void check_heads_strides(const char* caller, const char* name, const ConstHeadsView& view, int64_t heads,
                         int64_t size, std::span<const int32_t> offsets) {
  const bool end_to_end = view.sequence_stride == 0;
  if (view.plain(size)) return check_layout(caller, name, view);
  if (view.rows > 0 && view.data == nullptr)
    throw ShapeError(fmt::format("{}: {} has {} rows but no data", caller, name, view.rows));
  const auto sequences = static_cast<int64_t>(offsets.size()) - 1;
  check_strides(caller, name, size,
                {{{"token", view.stride, end_to_end ? view.rows : longest(offsets)},
                  {"head", view.step(size), heads},
                  {"sequence", view.sequence_stride, end_to_end ? 1 : sequences}}});
}

/// Keys and values of one of two kinds.
void check_halves(const AttentionInputs& in, const char* caller) {
  if (in.k.cols != 0 || in.v.cols != 0)
    throw ShapeError(fmt::format("{}: k or v is given besides half_k; leave them empty", caller));
  check_matrix(caller, "half_k", in.half_k, int64_t{in.key_heads} * in.d_key);
  check_matrix(caller, "half_v", in.half_v, int64_t{in.value_heads} * in.d_value);
  if (in.half_k.rows != in.half_v.rows) {
    throw ShapeError(fmt::format("{}: half_v has {} rows, expected the {} of half_k", caller, in.half_v.rows,
                                 in.half_k.rows));
  }
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

void check_element_strides(const AttentionInputs& in, const char* caller) {
  const ElementStrides& strides = *in.bias.element_strides;
  const int64_t keys = longest(in.key_offsets);
  for (const auto& [name, stride, least] :
       {std::tuple{"sequence", strides.sequence, int64_t{0}},
        {"head", strides.head, int64_t{0}},
        {"query", strides.query, strides.query == 0 ? int64_t{0} : keys}}) {
    if (stride < least || stride > kLargestStride / (int64_t{1} << 24)) {
      throw ShapeError(
          fmt::format("{}: bias.element_strides.{} is {}, expected 0 to repeat it or at least {}", caller,
                      name, stride, least == 0 ? 1 : least));
    }
  }
  const auto size = static_cast<int64_t>(in.bias.elements.size());
  for (size_t s = 0; s + 1 < in.query_offsets.size(); ++s) {
    const int64_t queries = in.query_offsets[s + 1] - in.query_offsets[s];
    const int64_t of_sequence = in.key_offsets[s + 1] - in.key_offsets[s];
    if (queries == 0 || of_sequence == 0) continue;
    const int64_t needed = static_cast<int64_t>(s) * strides.sequence + (in.heads - 1) * strides.head +
                           (queries - 1) * strides.query + of_sequence;
    if (needed > size) {
      throw ShapeError(fmt::format("{}: bias.elements has {} numbers, expected the {} that its strides reach",
                                   caller, size, needed));
    }
  }
}

void check_bias(const AttentionInputs& in, const char* caller) {
  const AttentionBias& bias = in.bias;
  const auto heads = static_cast<size_t>(in.heads);
  const auto check_clip = [&](const char* name, int clip) {
    if (clip < 0 || clip > kLargestClip) {
      throw ShapeError(fmt::format("{}: {} is {}, expected 0 to {}", caller, name, clip, kLargestClip));
    }
  };
  const auto check_buckets = [&](const char* name, std::span<const int32_t> buckets, int clip, int columns) {
    const int64_t distances = 2 * int64_t{clip} + 1;
    if (static_cast<int64_t>(buckets.size()) != distances) {
      throw ShapeError(fmt::format("{}: {} has {} columns, expected one for each of {} distances", caller,
                                   name, buckets.size(), distances));
    }
    for (const int32_t bucket : buckets) {
      if (bucket < 0 || bucket >= columns) {
        throw ShapeError(fmt::format("{}: {} holds {}, expected 0 to {}", caller, name, bucket, columns - 1));
      }
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
    if (!bias.buckets.empty())
      check_buckets("bias.buckets", bias.buckets, bias.distance_clip, bias.distance_columns);
  }
  if (bias.element_strides) {
    check_element_strides(in, caller);
  } else if (!bias.elements.empty() &&
             static_cast<int64_t>(bias.elements.size()) != attention_weights_size(in)) {
    throw ShapeError(fmt::format("{}: bias.elements has {} numbers, expected the {} there are weights",
                                 caller, bias.elements.size(), attention_weights_size(in)));
  }
  if (!bias.by_vectors()) return;
  check_clip("bias.vector_clip", bias.vector_clip);
  if (!bias.vector_buckets.empty())
    check_buckets("bias.vector_buckets", bias.vector_buckets, bias.vector_clip, bias.vector_columns);
  const int64_t columns = int64_t{in.heads} * bias.columns_of_vectors();
  if (columns > kMostVectorColumns) {
    throw ShapeError(
        fmt::format("{}: bias.by_query or by_key of {} heads has {} columns, expected at most {}", caller,
                    in.heads, columns, kMostVectorColumns));
  }
  const auto check_rows = [&](const char* name, ConstMatrixView numbers, int64_t rows, const char* of) {
    if (numbers.cols == 0) return;
    if (numbers.rows != rows) {
      throw ShapeError(
          fmt::format("{}: {} has {} rows, expected the {} of {}", caller, name, numbers.rows, rows, of));
    }
    check_matrix(caller, name, numbers, columns);
    if (numbers.stride > kMostVectorColumns) {
      throw ShapeError(fmt::format("{}: {} has rows {} numbers apart, expected at most {}", caller, name,
                                   numbers.stride, kMostVectorColumns));
    }
  };
  check_rows("bias.by_query", bias.by_query, in.q.rows, "q");
  check_rows("bias.by_key", bias.by_key, in.key_offsets.back(), "key_offsets");
}

}  // namespace

void check_attention(const AttentionInputs& in, const char* caller) {
  if (in.heads < 1 || in.heads >= 1 << 24) {
    throw ShapeError(fmt::format("{}: heads is {}, expected 1 to {}", caller, in.heads, (1 << 24) - 1));
  }
  check_heads(caller, "key_heads", in.key_heads, in.heads);
  check_heads(caller, "value_heads", in.value_heads, in.heads);
  check_size(caller, "d_key", in.d_key);
  check_size(caller, "d_value", in.d_value);
  check_heads_view(caller, "q", in.q, in.heads, in.d_key);
  if (in.halves()) {
    check_halves(in, caller);
  } else {
    if (in.half_v.cols != 0) throw ShapeError(fmt::format("{}: half_v is given without half_k", caller));
    check_heads_view(caller, "k", in.k, in.key_heads, in.d_key);
    check_heads_view(caller, "v", in.v, in.value_heads, in.d_value);
    if (in.k.rows != in.v.rows) {
      throw ShapeError(fmt::format("{}: v has {} rows, expected the {} of k", caller, in.v.rows, in.k.rows));
    }
  }
  check_offsets(caller, "query_offsets", in.query_offsets, in.q.rows);
  check_offsets(caller, "key_offsets", in.key_offsets,
                in.key_rows.empty() ? in.key_count() : static_cast<int64_t>(in.key_rows.size()));
  if (in.key_offsets.size() != in.query_offsets.size()) {
    throw ShapeError(fmt::format("{}: key_offsets describe {} sequences, expected the {} of query_offsets",
                                 caller, in.key_offsets.size() - 1, in.query_offsets.size() - 1));
  }
  check_heads_strides(caller, "q", in.q, in.heads, in.d_key, in.query_offsets);
  if (in.key_rows.empty() && !in.halves()) {
    check_heads_strides(caller, "k", in.k, in.key_heads, in.d_key, in.key_offsets);
    check_heads_strides(caller, "v", in.v, in.value_heads, in.d_value, in.key_offsets);
  } else if (!in.k.plain(in.d_key) || !in.v.plain(in.d_value)) {
    throw ShapeError(
        fmt::format("{}: key_rows is given; k and v then have no strides of heads and sequences", caller));
  }
  uint32_t largest = 0;  // as unsigned, a negative row is a large one
  for (const int32_t row : in.key_rows) largest = std::max(largest, static_cast<uint32_t>(row));
  if (!in.key_rows.empty() && largest >= in.key_count()) {
    throw ShapeError(fmt::format("{}: key_rows holds row {}, expected 0 to {}", caller,
                                 static_cast<int32_t>(largest), in.key_count() - 1));
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
    const int64_t keys = longest(in.key_offsets);
    if (in.mask.bits().words_per_row < 0 || in.mask.bits().words_per_row * 64 < keys) {
      throw ShapeError(fmt::format("{}: mask has {} words in a row, expected at least {} for {} keys", caller,
                                   in.mask.bits().words_per_row, (keys + 63) / 64, keys));
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

void check_result(const char* caller, const char* name, const AttentionInputs& in, const ConstHeadsView& view,
                  int64_t rows, int64_t heads, int64_t size, bool of_keys) {
  if (view.rows != rows || view.cols != heads * size)
    return check_result(caller, name, view, rows, heads * size);
  check_heads_strides(caller, name, view, heads, size, of_keys ? in.key_offsets : in.query_offsets);
}

void check_number_strides(const char* caller, const char* name, const AttentionInputs& in,
                          const NumberStrides& strides) {
  if (!strides.given()) return;
  check_strides(caller, name, 1,
                {{{"token", strides.token, longest(in.query_offsets)},
                  {"head", strides.head, in.heads},
                  {"sequence", strides.sequence, static_cast<int64_t>(in.query_offsets.size()) - 1}}});
}

}  // namespace mh::detail
