#include <fmt/format.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "arrays.h"
#include "call.h"
#include "module_parts.h"
#include "multihead/base/finite.h"
#include "multihead/base/thread_pool.h"
#include "multihead/kernels/attention.h"
#include "multihead/kernels/soft_cap.h"
#include "multihead/tensor/tensor.h"

namespace mh::python {
namespace {

/// How the axes of an array are called.
enum class Layout {
  kTokensHeads,  // [B, T, H, D]
  kHeadsTokens,  // [B, H, T, D]
  kRagged,       // [N, H, D], sequences end to end
};

Layout layout_of(const std::string& name, bool ragged) {
  if (ragged) return Layout::kRagged;
  if (name == "BTHD") return Layout::kTokensHeads;
  if (name == "BHTD") return Layout::kHeadsTokens;
  throw UsageError(fmt::format("`layout`: expected 'BTHD' or 'BHTD', got '{}'", name));
}

/// Tokens of an argument, sequence by sequence, with the sizes of its heads.
struct Rows {
  ConstMatrixView matrix;  // [N, H * D]
  int64_t sequences = 0, tokens = 0, heads = 0, size = 0;
};

Rows rows_of(FloatArray& array, Layout layout) {
  const size_t expected = layout == Layout::kRagged ? 3 : 4;
  if (array.dimensions() != expected) {
    throw ShapeError(fmt::format("`{}`: expected {}, got {}", array.name(),
                                 layout == Layout::kRagged        ? "[tokens, heads, size]"
                                 : layout == Layout::kTokensHeads ? "[batch, tokens, heads, size]"
                                                                  : "[batch, heads, tokens, size]",
                                 array.shape_text()));
  }
  switch (layout) {
    case Layout::kRagged:
      return {array.matrix({0, 1, 2}, 2), 0, array.size(0), array.size(1), array.size(2)};
    case Layout::kTokensHeads:
      return {array.matrix({0, 1, 2, 3}, 2), array.size(0), array.size(1), array.size(2), array.size(3)};
    case Layout::kHeadsTokens:
      break;
  }
  return {array.matrix({0, 2, 1, 3}, 2), array.size(0), array.size(2), array.size(1), array.size(3)};
}

std::vector<int64_t> shape_of(const Rows& queries, Layout layout, int64_t size) {
  if (layout == Layout::kRagged) return {queries.tokens, queries.heads, size};
  if (layout == Layout::kTokensHeads) return {queries.sequences, queries.tokens, queries.heads, size};
  return {queries.sequences, queries.heads, queries.tokens, size};
}

std::vector<int32_t> equal_offsets(int64_t sequences, int64_t tokens, const std::string& name) {
  if (sequences > 0 && tokens > std::numeric_limits<int32_t>::max() / sequences)
    throw ShapeError(fmt::format("`{}`: more than 2^31 tokens in one call", name));
  std::vector<int32_t> offsets;
  for (int64_t s = 0; s <= sequences; ++s) offsets.push_back(static_cast<int32_t>(s * tokens));
  return offsets;
}

/// The mask of a call, and what it points at.
struct OwnedMask {
  Mask mask = Mask::none();
  std::vector<uint64_t> words;
};

using Booleans = nb::ndarray<const bool, nb::ro, nb::device::cpu>;

/// [Tq, Tk] for all sequences, or [B, Tq, Tk]; true: the query may see the key.
OwnedMask dense_mask(const Booleans& allowed, const Rows& queries, const Rows& keys, Layout layout) {
  if (layout == Layout::kRagged)
    throw UsageError(
        "`mask`: an array of booleans is for arrays [B, T, H, D]; with `offsets` give 'causal' or a window");
  const size_t axes = allowed.ndim();
  const bool fits =
      (axes == 2 || (axes == 3 && static_cast<int64_t>(allowed.shape(0)) == queries.sequences)) &&
      static_cast<int64_t>(allowed.shape(axes - 2)) == queries.tokens &&
      static_cast<int64_t>(allowed.shape(axes - 1)) == keys.tokens;
  if (!fits) {
    std::vector<int64_t> shape;
    for (size_t i = 0; i < axes; ++i) shape.push_back(static_cast<int64_t>(allowed.shape(i)));
    throw ShapeError(fmt::format("`mask`: expected booleans [{}, {}] or [{}, {}, {}], got {}", queries.tokens,
                                 keys.tokens, queries.sequences, queries.tokens, keys.tokens,
                                 shape_text(shape)));
  }
  OwnedMask made;
  const int64_t words_per_row = std::max<int64_t>(1, (keys.tokens + 63) / 64);
  const int64_t rows = queries.sequences * queries.tokens;
  made.words.assign(static_cast<size_t>(std::max<int64_t>(1, rows * words_per_row)), 0);
  const int64_t of_sequence = axes == 3 ? allowed.stride(0) : 0, of_query = allowed.stride(axes - 2),
                of_key = allowed.stride(axes - 1);
  for (int64_t row = 0; row < rows; ++row) {
    const bool* first = allowed.data() + row / queries.tokens * of_sequence + row % queries.tokens * of_query;
    for (int64_t j = 0; j < keys.tokens; ++j) {
      if (first[j * of_key])
        made.words[static_cast<size_t>(row * words_per_row + j / 64)] |= uint64_t{1} << (j % 64);
    }
  }
  made.mask = Mask::dense({made.words.data(), words_per_row});
  return made;
}

OwnedMask mask_of(const nb::object& given, const Rows& queries, const Rows& keys, Layout layout) {
  if (given.is_none()) return {};
  if (nb::isinstance<nb::str>(given)) {
    const auto name = nb::cast<std::string>(given);
    if (name == "causal") return {Mask::causal(), {}};
    if (name == "causal_top_left") return {Mask::causal_top_left(), {}};
    throw UsageError(fmt::format(
        "`mask`: expected None, 'causal', 'causal_top_left', a window (left, right) or booleans, got '{}'",
        name));
  }
  if (std::pair<int64_t, int64_t> window; nb::isinstance<nb::tuple>(given)) {
    const auto sides = nb::borrow<nb::tuple>(given);
    if (sides.size() == 2 && nb::try_cast(sides[0], window.first) && nb::try_cast(sides[1], window.second))
      return {Mask::window(window.first, window.second), {}};
    throw UsageError("`mask`: a window is two whole numbers, (left, right)");
  }
  Booleans allowed;
  if (!nb::try_cast(given, allowed, false) || allowed.ndim() < 2 || allowed.ndim() > 3) {
    throw UsageError(
        "`mask`: expected None, 'causal', 'causal_top_left', a window (left, right) or booleans [Tq, Tk] or "
        "[B, Tq, Tk]");
  }
  return dense_mask(allowed, queries, keys, layout);
}

struct Options {
  std::string layout = "BTHD";
  std::optional<std::vector<int32_t>> offsets, key_offsets;
  nb::object mask = nb::none();
  std::optional<float> scale, soft_cap;
  std::optional<nb::object> alibi_slopes;
};

/// What forward and backward passes have in common.
class Call {
 public:
  Call(nb::handle q, nb::handle k, nb::handle v, const Options& options)
      : q_(q, "q"), k_(k, "k"), v_(v, "v"), layout_(layout_of(options.layout, options.offsets.has_value())) {
    if (options.key_offsets && !options.offsets)
      throw UsageError("`key_offsets` belong to `offsets`, which are missing");
    queries_ = rows_of(q_, layout_), keys_ = rows_of(k_, layout_), values_ = rows_of(v_, layout_);
    check_sizes();
    if (options.offsets) {
      query_offsets_ = *options.offsets;
      key_offsets_ = options.key_offsets.value_or(*options.offsets);
    } else {
      // Without queries nothing is computed, however many sequences there are.
      const int64_t sequences = queries_.tokens == 0 ? 0 : queries_.sequences;
      query_offsets_ = equal_offsets(sequences, queries_.tokens, "q");
      key_offsets_ = equal_offsets(sequences, keys_.tokens, "k");
    }
    if (options.scale && !std::isfinite(*options.scale)) throw UsageError("`scale` is not a finite number");
    if (options.soft_cap && !is_soft_cap(*options.soft_cap))
      throw UsageError(fmt::format("`soft_cap` is {}; expected a positive number, for example 50, or None",
                                   *options.soft_cap));
    mask_ = mask_of(options.mask, queries_, keys_, layout_);
    in_.q = queries_.matrix, in_.k = keys_.matrix, in_.v = values_.matrix;
    in_.heads = static_cast<int>(queries_.heads);
    in_.key_heads = static_cast<int>(keys_.heads), in_.value_heads = static_cast<int>(values_.heads);
    in_.d_key = static_cast<int>(queries_.size), in_.d_value = static_cast<int>(values_.size);
    in_.query_offsets = query_offsets_, in_.key_offsets = key_offsets_;
    in_.scale = options.scale ? *options.scale : attention_scale(in_.d_key);
    in_.soft_cap = options.soft_cap;
    in_.mask = mask_.mask;
    if (options.alibi_slopes) {
      slopes_ = FloatArray(*options.alibi_slopes, "alibi_slopes").flat();
      in_.bias.slopes = slopes_;
    }
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  const AttentionInputs& in() const { return in_; }
  Layout layout() const { return layout_; }
  const Rows& queries() const { return queries_; }
  const Rows& keys() const { return keys_; }
  const Rows& values() const { return values_; }

 private:
  void check_sizes() const {
    const auto fail = [&](const char* what) {
      throw ShapeError(
          fmt::format("{}: q is {}, k {}, v {}", what, q_.shape_text(), k_.shape_text(), v_.shape_text()));
    };
    for (const Rows* rows : {&queries_, &keys_, &values_}) {
      if (rows->heads < 1 || rows->heads > kMost) fail("there must be 1 to 65535 heads");
      if (rows->size < 1 || rows->size > 1024) fail("heads must have 1 to 1024 numbers");
    }
    if (queries_.size != keys_.size) fail("queries and keys have different sizes");
    if (keys_.tokens != values_.tokens) fail("there is not one value for each key");
    if (queries_.heads % keys_.heads != 0 || queries_.heads % values_.heads != 0)
      fail("the number of query heads is not a multiple of those of key heads and value heads");
    if (queries_.sequences != keys_.sequences || keys_.sequences != values_.sequences)
      fail("different numbers of sequences");
  }

  static constexpr int64_t kMost = 65535;
  FloatArray q_, k_, v_;
  Layout layout_;
  Rows queries_, keys_, values_;
  std::vector<int32_t> query_offsets_, key_offsets_;
  OwnedMask mask_;
  std::vector<float> slopes_;
  AttentionInputs in_;
};

/// Rows of the kernel as an array in the layout of the call.
NumpyFloats in_layout(AlignedBuffer<float> rows, const Rows& shape, Layout layout, int64_t size) {
  if (layout != Layout::kHeadsTokens) return numpy_of(std::move(rows), shape_of(shape, layout, size));
  AlignedBuffer<float> turned(shape.sequences * shape.tokens * shape.heads * size);
  for (int64_t b = 0; b < shape.sequences; ++b) {
    for (int64_t t = 0; t < shape.tokens; ++t) {
      for (int64_t h = 0; h < shape.heads; ++h) {
        std::copy_n(rows.data() + ((b * shape.tokens + t) * shape.heads + h) * size, size,
                    turned.data() + ((b * shape.heads + h) * shape.tokens + t) * size);
      }
    }
  }
  return numpy_of(std::move(turned), shape_of(shape, layout, size));
}

/// Checked in parts by all threads: of large outputs this is otherwise a share of the time that can be seen.
void require_all_finite(const float* numbers, int64_t count, const char* what) {
  constexpr int64_t kPart = int64_t{1} << 16;
  parallel_for((count + kPart - 1) / kPart, [&](int64_t part) {
    const int64_t begin = part * kPart, size = std::min(kPart, count - begin);
    if (!all_finite(std::span(numbers + begin, static_cast<size_t>(size)))) {
      throw Error(fmt::format(
          "the {} has numbers that are not finite; look for them in q, k and v, where a query may see them",
          what));
    }
  });
}

/// Whether rows of both may lie in the same memory.
bool share_memory(ConstMatrixView a, ConstMatrixView b) {
  if (a.size() == 0 || b.size() == 0) return false;
  const std::less<const float*> before;
  return before(a.data, b.row(b.rows - 1) + b.cols) && before(b.data, a.row(a.rows - 1) + a.cols);
}

/// The caller's own memory for the output, [B, T, H, Dv].
MatrixView given_output(const nb::handle& out, const Call& call) {
  nb::ndarray<float, nb::device::cpu, nb::c_contig> array;
  const auto expected = shape_of(call.queries(), call.layout(), call.values().size);
  const bool is_array = nb::try_cast(nb::borrow(out), array, false);
  bool fits = is_array && array.ndim() == expected.size() && call.layout() != Layout::kHeadsTokens;
  for (size_t i = 0; fits && i < expected.size(); ++i)
    fits = static_cast<int64_t>(array.shape(i)) == expected[i];
  if (!fits) {
    throw UsageError(fmt::format(
        "`out`: expected a writable array of float32 {}, one row after the other, in layout 'BTHD'",
        shape_text(expected)));
  }
  const MatrixView output{array.data(), call.in().q.rows, call.queries().heads * call.values().size};
  for (const auto& [name, input] : {std::pair{"q", call.in().q}, {"k", call.in().k}, {"v", call.in().v}}) {
    if (share_memory(output, input))
      throw UsageError(fmt::format(
          "`out` shares memory with `{}`, which is read while it is written; give other memory", name));
  }
  return output;
}

nb::object attention(const nb::object& q, const nb::object& k, const nb::object& v, const nb::object& mask,
                     std::optional<float> scale, std::optional<float> soft_cap, const std::string& layout,
                     std::optional<std::vector<int32_t>> offsets,
                     std::optional<std::vector<int32_t>> key_offsets, std::optional<nb::object> alibi_slopes,
                     bool return_lse, bool return_weights, const nb::object& out) {
  const Call call(
      q, k, v,
      {layout, std::move(offsets), std::move(key_offsets), mask, scale, soft_cap, std::move(alibi_slopes)});
  const AttentionInputs& in = call.in();
  const Rows& queries = call.queries();
  const int64_t rows = in.q.rows, size = call.values().size, columns = queries.heads * size;
  if (return_weights && call.layout() == Layout::kRagged)
    throw UsageError("`return_weights` is for arrays [B, T, H, D], without `offsets`");
  AlignedBuffer<float> output, lse, weights;
  AttentionOutputs outputs;
  if (out.is_none()) {
    output.resize(rows * columns);
    outputs.output = {output.data(), rows, columns};
  } else {
    outputs.output = given_output(out, call);
  }
  if (return_lse) outputs.lse = lse.get(rows * queries.heads);
  if (return_weights) outputs.weights = weights.get(attention_weights_size(in));
  long_call([&] {
    if (rows == 0) return;
    attention_forward(in, outputs);
    require_all_finite(outputs.output.data, rows * columns, "output");
  });
  const nb::object result =
      out.is_none() ? nb::cast(in_layout(std::move(output), queries, call.layout(), size)) : out;
  if (!return_lse && !return_weights) return result;
  nb::list results;
  results.append(result);
  if (return_lse) {
    nb::object array = nb::cast(in_layout(std::move(lse), queries, call.layout(), 1));
    results.append(array.attr("reshape")(
        nb::tuple(nb::object(array.attr("shape"))[nb::slice(nb::none(), nb::int_(-1), nb::none())])));
  }
  if (return_weights)
    results.append(nb::cast(numpy_of(
        std::move(weights), {queries.sequences, queries.heads, queries.tokens, call.keys().tokens})));
  return nb::tuple(results);
}

std::tuple<NumpyFloats, NumpyFloats, NumpyFloats> attention_backward(
    const nb::object& q, const nb::object& k, const nb::object& v, const nb::object& out,
    const nb::object& lse, const nb::object& d_out, const nb::object& mask, std::optional<float> scale,
    std::optional<float> soft_cap, const std::string& layout, std::optional<std::vector<int32_t>> offsets,
    std::optional<std::vector<int32_t>> key_offsets, std::optional<nb::object> alibi_slopes) {
  const Call call(
      q, k, v,
      {layout, std::move(offsets), std::move(key_offsets), mask, scale, soft_cap, std::move(alibi_slopes)});
  const AttentionInputs& in = call.in();
  const Rows &queries = call.queries(), &keys = call.keys(), &values = call.values();
  FloatArray output(out, "out"), d_output(d_out, "d_out"), sums(lse, "lse");
  const auto expected = shape_of(queries, call.layout(), values.size);
  for (const FloatArray* array : {&output, &d_output}) {
    if (array->shape() != expected)
      throw ShapeError(
          fmt::format("`{}`: expected {}, got {}", array->name(), shape_text(expected), array->shape_text()));
  }
  std::vector<int64_t> of_sums = shape_of(queries, call.layout(), 1);
  of_sums.pop_back();
  if (sums.shape() != of_sums)
    throw ShapeError(fmt::format("`lse`: expected {}, got {}", shape_text(of_sums), sums.shape_text()));
  std::vector<size_t> order(of_sums.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  if (call.layout() == Layout::kHeadsTokens) order = {0, 2, 1};
  const Tensor packed_sums = copied(sums.matrix(order, 1));

  AlignedBuffer<float> d_q(in.q.size()), d_k(in.k.size()), d_v(in.v.size());
  const AttentionGradients gradients{.output = rows_of(output, call.layout()).matrix,
                                     .lse = packed_sums.data(),
                                     .d_output = rows_of(d_output, call.layout()).matrix,
                                     .d_q = {d_q.data(), in.q.rows, in.q.cols},
                                     .d_k = {d_k.data(), in.k.rows, in.k.cols},
                                     .d_v = {d_v.data(), in.v.rows, in.v.cols}};
  long_call([&] {
    if (in.q.rows == 0 || in.k.rows == 0) {
      for (AlignedBuffer<float>* gradient : {&d_q, &d_k, &d_v})
        std::fill_n(gradient->data(), gradient->size(), 0.0f);
      return;
    }
    attention_backward(in, gradients);
    require_all_finite(d_q.data(), in.q.size(), "gradient of q");
    require_all_finite(d_k.data(), in.k.size(), "gradient of k");
    require_all_finite(d_v.data(), in.v.size(), "gradient of v");
  });
  return {in_layout(std::move(d_q), queries, call.layout(), queries.size),
          in_layout(std::move(d_k), keys, call.layout(), keys.size),
          in_layout(std::move(d_v), values, call.layout(), values.size)};
}

}  // namespace

void add_attention(nb::module_& module) {
  using namespace nb::literals;
  module.def("attention", attention, "q"_a, "k"_a, "v"_a, nb::kw_only(), "mask"_a = nb::none(),
             "scale"_a = nb::none(), "soft_cap"_a = nb::none(), "layout"_a = "BTHD", "offsets"_a = nb::none(),
             "key_offsets"_a = nb::none(), "alibi_slopes"_a = nb::none(), "return_lse"_a = false,
             "return_weights"_a = false, "out"_a = nb::none());
  module.def("attention_backward", attention_backward, "q"_a, "k"_a, "v"_a, "out"_a, "lse"_a, "d_out"_a,
             nb::kw_only(), "mask"_a = nb::none(), "scale"_a = nb::none(), "soft_cap"_a = nb::none(),
             "layout"_a = "BTHD", "offsets"_a = nb::none(), "key_offsets"_a = nb::none(),
             "alibi_slopes"_a = nb::none());
}

}  // namespace mh::python
