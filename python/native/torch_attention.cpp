// Attention on tensors of torch, which multihead.torch hands over as addresses, shapes and strides: so this module is compiled
// without torch and works with every version of it.
#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "module_parts.h"
#include "multihead/base/aligned.h"
#include "multihead/base/thread_pool.h"
#include "multihead/kernels/attention.h"

namespace mh::python {
namespace {

namespace nb = nanobind;
using namespace nb::literals;

/// A number for each of the four axes of a tensor: [B, heads, T, size], or [B, H, Tq, Tk] of a mask.
using Axes = std::array<int64_t, 4>;
/// Address, shape and strides of a tensor; strides in numbers.
using Given = std::tuple<uintptr_t, Axes, Axes>;

template <class T>
struct Tensor {
  T* data;
  Axes shape, strides;

  explicit Tensor(const Given& given)
      : data(reinterpret_cast<T*>(std::get<0>(given))),  // NOLINT: an address from torch
        shape(std::get<1>(given)),
        strides(std::get<2>(given)) {
    for (size_t axis = 0; axis < 4; ++axis)
      if (shape[axis] == 1) strides[axis] = 0;  // torch leaves any number there
  }
  int64_t sequences() const { return shape[0]; }
  int64_t heads() const { return shape[1]; }
  int64_t tokens() const { return shape[2]; }
  int64_t size() const { return shape[3]; }
  T* row(int64_t s, int64_t head, int64_t token) const {
    return data + s * strides[0] + head * strides[1] + token * strides[2];
  }
  /// Whether the numbers of a head lie side by side and no two places overlap, as BasicHeadsView asks for.
  bool is_view() const {
    if (shape[3] > 1 && strides[3] != 1) return false;
    std::array<size_t, 3> order = {0, 1, 2};
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return strides[a] < strides[b]; });
    int64_t reach = size();
    for (const size_t axis : order) {
      if (shape[axis] <= 1) continue;
      if (strides[axis] < reach) return false;
      reach += strides[axis] * (shape[axis] - 1);
    }
    return true;
  }
  /// The tensor as `rows` rows, one for each token that counts. REQUIRES: is_view().
  BasicHeadsView<T> view(int64_t rows) const {
    const int64_t width = heads() * size();
    const int64_t row_stride = tokens() == 1 ? width : strides[2];
    return {BasicMatrixView<T>{data, rows, width, row_stride}, heads() == 1 ? 0 : strides[1], strides[0]};
  }
};

/// An input, and a copy of it where it lies in a way that the kernel does not read, such as a tensor that expand() repeats.
class Input {
 public:
  explicit Input(const Given& given) : tensor_(given) {
    if (tensor_.is_view()) return;
    const Axes& shape = tensor_.shape;
    copy_.resize(shape[0] * shape[1] * shape[2] * shape[3]);
    parallel_for(shape[0] * shape[1], [&](int64_t part) {
      float* to = copy_.data() + part * shape[2] * shape[3];
      for (int64_t t = 0; t < shape[2]; ++t) {
        const float* from = tensor_.row(part / shape[1], part % shape[1], t);
        for (int64_t c = 0; c < shape[3]; ++c) *to++ = from[c * tensor_.strides[3]];
      }
    });
    tensor_ = Tensor<const float>(
        {reinterpret_cast<uintptr_t>(copy_.data()),
         shape,
         {shape[1] * shape[2] * shape[3], shape[2] * shape[3], shape[3], 1}});  // [B, heads, T, size]
  }
  const Tensor<const float>& operator*() const { return tensor_; }
  const Tensor<const float>* operator->() const { return &tensor_; }

 private:
  Tensor<const float> tensor_;
  AlignedBuffer<float> copy_;
};

/// Booleans [B, H, Tq, Tk], true where the query may see the key, in the form that costs the kernel least: keys at a
/// sequence's end that no query sees are left out, what is the same for all heads becomes bits, the rest a bias of 0 and -infinity.
class Visible {
 public:
  /// Sets lengths[s], how many keys of sequence s are left. keeps_all: the weights of all keys are wanted.
  Visible(const Tensor<const bool>& mask, std::vector<int64_t>& lengths, bool keeps_all) : mask_(mask) {
    const int64_t sequences = mask.sequences(), queries = mask.tokens(), keys = mask.size();
    if (mask.strides[1] != 0) {
      make_bias();
      return;
    }
    if (mask.strides[2] == 0 && !keeps_all) {
      bool prefixes = true;  // the seen keys of every sequence are its first ones
      for (int64_t s = 0; s < sequences; ++s) {
        int64_t& length = lengths[static_cast<size_t>(s)];
        while (length > 0 && !sees(s, 0, length - 1)) --length;
        for (int64_t j = 0; j < length; ++j) prefixes = prefixes && sees(s, 0, j);
      }
      if (prefixes) return;
    }
    words_per_row_ = (keys + 63) / 64;
    words_.assign(static_cast<size_t>(sequences * queries * words_per_row_), 0);
    parallel_for(sequences * queries, [&](int64_t row) {
      uint64_t* words = words_.data() + row * words_per_row_;
      const bool* first = mask_.row(row / queries, 0, row % queries);
      for (int64_t j = 0; j < keys; ++j)
        words[j / 64] |= static_cast<uint64_t>(first[j * mask_.strides[3]]) << (j % 64);
    });
  }
  void put(AttentionInputs& in) const {
    if (!words_.empty()) in.mask = Mask::dense({words_.data(), words_per_row_});
    if (bias_.empty()) return;
    in.bias.elements = bias_;
    in.bias.element_strides = bias_strides_;
  }

 private:
  bool sees(int64_t s, int64_t query, int64_t key) const {
    return mask_.row(s, 0, query)[key * mask_.strides[3]];
  }
  /// [B or 1, H, Tq or 1, Tk]: axes that the mask repeats are repeated by a stride of 0.
  void make_bias() {
    const int64_t heads = mask_.heads(), keys = mask_.size();
    const int64_t sequences = mask_.strides[0] == 0 ? 1 : mask_.sequences(),
                  queries = mask_.strides[2] == 0 ? 1 : mask_.tokens();
    bias_strides_ = {sequences == 1 ? 0 : heads * queries * keys, queries * keys, queries == 1 ? 0 : keys};
    bias_.resize(static_cast<size_t>(sequences * heads * queries * keys));
    parallel_for(sequences * heads, [&](int64_t part) {
      float* to = bias_.data() + part * queries * keys;
      for (int64_t i = 0; i < queries; ++i) {
        const bool* from = mask_.row(part / heads, part % heads, i);
        for (int64_t j = 0; j < keys; ++j)
          *to++ = from[j * mask_.strides[3]] ? 0.0f : -std::numeric_limits<float>::infinity();
      }
    });
  }

  Tensor<const bool> mask_;
  int64_t words_per_row_ = 0;
  std::vector<uint64_t> words_;
  std::vector<float> bias_;
  ElementStrides bias_strides_;
};

std::vector<int32_t> offsets_of(const std::vector<int64_t>& lengths) {
  std::vector<int32_t> offsets = {0};
  for (const int64_t length : lengths) offsets.push_back(offsets.back() + static_cast<int32_t>(length));
  return offsets;
}

/// Where sequences begin in the rows of q and of k: addresses of [S + 1] int32 each, and S. The tensors then have one
/// "sequence", which holds the rows of all.
using Ragged = std::tuple<uintptr_t, uintptr_t, int64_t>;

struct Options {
  std::optional<Given> visible, bias;  // [B, H, Tq, Tk] of bool and of float32, at most one of them
  bool causal = false;                 // as torch means it: query i sees keys j <= i
  float scale = 1, dropout = 0;
  uint64_t seed = 0;
  std::optional<float> soft_cap;
  std::optional<Ragged> ragged;
  std::optional<std::pair<int64_t, int64_t>>
      window;  // keys before and after the query, counted from the sequences' ends
  bool weights_wanted = false;
};

std::vector<int32_t> int32_numbers(uintptr_t address, int64_t count) {
  const auto* first = reinterpret_cast<const int32_t*>(address);  // NOLINT: from torch
  return {first, first + count};
}

/// The inputs of the kernel with all that they refer to.
class Call {
 public:
  Call(const Given& q, const Given& k, const Given& v, const Options& options) : q_(q), k_(k), v_(v) {
    lengths_.assign(static_cast<size_t>(q_->sequences()), k_->tokens());
    if (options.visible)
      visible_.emplace(Tensor<const bool>(*options.visible), lengths_, options.weights_wanted);
    if (options.ragged) {
      const auto [queries, keys, sequences] = *options.ragged;
      query_offsets_ = int32_numbers(queries, sequences + 1);
      key_offsets_ = int32_numbers(keys, sequences + 1);
    } else {
      query_offsets_ = offsets_of(std::vector<int64_t>(lengths_.size(), q_->tokens()));
      key_offsets_ = offsets_of(lengths_);
    }
    is_ragged_ = options.ragged.has_value();
    in_.q = view(*q_, query_rows());
    in_.k = view(*k_, key_rows()), in_.v = view(*v_, key_rows());
    in_.heads = static_cast<int>(q_->heads());
    in_.key_heads = in_.value_heads = static_cast<int>(k_->heads());
    in_.d_key = static_cast<int>(q_->size()), in_.d_value = static_cast<int>(v_->size());
    in_.query_offsets = query_offsets_, in_.key_offsets = key_offsets_;
    in_.scale = options.scale;
    in_.soft_cap = options.soft_cap;
    if (options.causal) in_.mask = Mask::causal_top_left();
    if (options.window) in_.mask = Mask::window(options.window->first, options.window->second);
    if (visible_) visible_->put(in_);
    if (options.bias) put_bias(Tensor<const float>(*options.bias));
    if (options.dropout == 0) return;
    sentences_.resize(lengths_.size());
    std::iota(sentences_.begin(), sentences_.end(), 0);
    in_.dropout = {options.dropout, dropout_stream(options.seed, 0, 0), query_offsets_, sentences_};
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  const AttentionInputs& in() const { return in_; }
  int64_t query_rows() const { return query_offsets_.back(); }
  int64_t key_rows() const { return key_offsets_.back(); }
  /// Where log sum exp of the scores lies: [B, H, Tq], or [Nq, H] of ragged sequences.
  NumberStrides lse_strides() const {
    if (is_ragged_) return {};
    return {q_->heads() * q_->tokens(), q_->tokens(), 1};
  }
  /// A tensor of queries or keys with so many rows that count.
  template <class T>
  BasicHeadsView<T> view(const Tensor<T>& tensor, int64_t rows) const {
    BasicHeadsView<T> made = tensor.view(rows);
    if (is_ragged_) made.sequence_stride = 0;
    return made;
  }
  /// Sets the gradient of keys that no query sees to 0.
  void clear_unseen(const Tensor<float>& gradient) const {
    for (int64_t s = 0; s < gradient.sequences(); ++s) {
      for (int64_t head = 0; head < gradient.heads(); ++head) {
        for (int64_t t = lengths_[static_cast<size_t>(s)]; t < gradient.tokens(); ++t)
          std::fill_n(gradient.row(s, head, t), gradient.size(), 0.0f);
      }
    }
  }

 private:
  void put_bias(const Tensor<const float>& bias) {
    const auto [sequences, heads, queries, keys] = bias.shape;
    const auto& [of_sequence, of_head, of_query, of_key] = bias.strides;
    const int64_t count =
        (sequences - 1) * of_sequence + (heads - 1) * of_head + (queries - 1) * of_query + keys;
    in_.bias.elements = {bias.data, static_cast<size_t>(count)};
    const bool side_by_side = (queries == 1 || of_query == keys) &&
                              (heads == 1 || of_head == queries * keys) &&
                              (sequences == 1 || of_sequence == heads * queries * keys);
    if (!side_by_side) in_.bias.element_strides = {of_sequence, of_head, of_query};
  }

  Input q_, k_, v_;
  std::vector<int64_t> lengths_;  // [B] keys that count
  std::optional<Visible> visible_;
  std::vector<int32_t> query_offsets_, key_offsets_;
  std::vector<int64_t> sentences_;
  bool is_ragged_ = false;
  AttentionInputs in_;
};

void forward(const Given& q, const Given& k, const Given& v, const Given& output,
             std::optional<uintptr_t> lse, std::optional<Given> visible, std::optional<Given> bias,
             bool causal, float scale, float dropout, uint64_t seed, std::optional<float> soft_cap,
             std::optional<Ragged> ragged, std::optional<std::pair<int64_t, int64_t>> window,
             std::optional<uintptr_t> weights) {
  const nb::gil_scoped_release unlocked;
  const bool weights_wanted = weights.has_value();
  const Call call(q, k, v,
                  {visible, bias, causal, scale, dropout, seed, soft_cap, ragged, window, weights_wanted});
  attention_forward(call.in(), {.output = call.view(Tensor<float>(output), call.query_rows()),
                                .lse = reinterpret_cast<float*>(lse.value_or(0)),  // NOLINT: from torch
                                .weights = reinterpret_cast<float*>(weights.value_or(0)),  // NOLINT: the same
                                .lse_strides = call.lse_strides()});
}

void backward(const Given& q, const Given& k, const Given& v, const Given& output, uintptr_t lse,
              const Given& d_output, const Given& d_q, const Given& d_k, const Given& d_v,
              std::optional<uintptr_t> d_bias, std::optional<Given> visible, std::optional<Given> bias,
              bool causal, float scale, float dropout, uint64_t seed, std::optional<float> soft_cap,
              std::optional<Ragged> ragged, std::optional<std::pair<int64_t, int64_t>> window) {
  const nb::gil_scoped_release unlocked;
  const Call call(q, k, v, {visible, bias, causal, scale, dropout, seed, soft_cap, ragged, window, false});
  const Input held_output(output), held_d_output(d_output);
  const Tensor<float> to_k(d_k), to_v(d_v);
  AttentionGradients gradients{.output = call.view(*held_output, call.query_rows()),
                               .lse = reinterpret_cast<const float*>(lse),  // NOLINT: from torch
                               .d_output = call.view(*held_d_output, call.query_rows()),
                               .d_q = call.view(Tensor<float>(d_q), call.query_rows()),
                               .d_k = call.view(to_k, call.key_rows()),
                               .d_v = call.view(to_v, call.key_rows()),
                               .lse_strides = call.lse_strides()};
  gradients.d_bias.elements = reinterpret_cast<float*>(d_bias.value_or(0));  // NOLINT: from torch
  attention_backward(call.in(), gradients);
  if (!ragged) call.clear_unseen(to_k), call.clear_unseen(to_v);
}

}  // namespace

void add_torch_attention(nb::module_& module) {
  const auto none = nb::none();
  module.def("torch_attention", forward, "q"_a, "k"_a, "v"_a, "output"_a, "lse"_a.none(), "visible"_a.none(),
             "bias"_a.none(), "causal"_a, "scale"_a, "dropout"_a, "seed"_a, "soft_cap"_a = none,
             "ragged"_a = none, "window"_a = none, "weights"_a = none);
  module.def("torch_attention_backward", backward, "q"_a, "k"_a, "v"_a, "output"_a, "lse"_a, "d_output"_a,
             "d_q"_a, "d_k"_a, "d_v"_a, "d_bias"_a.none(), "visible"_a.none(), "bias"_a.none(), "causal"_a,
             "scale"_a, "dropout"_a, "seed"_a, "soft_cap"_a = none, "ragged"_a = none, "window"_a = none);
}

}  // namespace mh::python
