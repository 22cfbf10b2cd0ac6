// Makes valid inputs of attention invalid in one field, and says which field that is.
#pragma once

#include <climits>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "attention_random.h"

namespace mh {

struct Spoilt {
  std::vector<std::string> fields;  // the error must name one of these; none: nothing was spoilt
  bool backward = false;            // they are the backward pass's alone
  std::vector<int32_t> numbers;     // what the description points to now
  std::vector<float> gate, numbers_of_bias;
};

namespace detail {

template <class View>
bool spoil_view(Choices& choices, View& view) {
  switch (choices.below(5)) {
    case 0:
      view.cols += choices.of({1, -1, INT_MAX});
      return true;
    case 1:
      view.rows = choices.of<int64_t>({-1, INT_MIN, int64_t{1} << 40});
      return true;
    case 2:
      view.cols = choices.of<int64_t>({-view.cols, int64_t{1} << 62});
      return true;
    case 3:
      if (view.rows == 0) return false;
      view.data = nullptr;
      return true;
    default:
      if (view.rows < 2) return false;
      view.stride = choices.of<int64_t>({0, view.cols - 1, -view.stride, LLONG_MIN});
      return true;
  }
}

inline void spoil_offsets(Choices& choices, Spoilt& spoilt, std::span<const int32_t>& offsets) {
  auto& changed = spoilt.numbers;
  changed.assign(offsets.begin(), offsets.end());
  switch (choices.below(4)) {
    case 0:
      changed.clear();
      break;
    case 1:
      changed.push_back(changed.back());  // one sequence more than the others have
      break;
    case 2:
      changed[choices.below(static_cast<uint32_t>(changed.size()))] = choices.of({-1, INT_MIN});
      break;
    default:
      changed.back() += choices.of({1, 1000000});
  }
  offsets = changed;
  spoilt.fields = {"query_offsets", "key_offsets"};
}

}  // namespace detail

/// Changes a field so that the description is impossible whatever the other fields hold; what it must point
/// to lives in `spoilt`.
inline void spoil(Choices& choices, GuardedAttention& p, Spoilt& spoilt) {
  const float nan = std::nanf(""), infinity = std::numeric_limits<float>::infinity();
  AttentionInputs& in = p.in;
  const auto spoil_view = [&](auto& view, std::vector<std::string> fields, bool backward = false) {
    if (!detail::spoil_view(choices, view)) return;
    spoilt.fields = std::move(fields);
    spoilt.backward = backward;
  };
  const auto spoil_number = [&](auto& field, const char* name, auto values) {
    field = choices.of(values);
    spoilt.fields = {name};
  };
  using Ints = std::initializer_list<int>;
  using Floats = std::initializer_list<float>;
  switch (choices.below(38)) {
    case 0:
      return spoil_number(in.heads, ": heads ", Ints{0, -1, 1 << 24, INT_MIN, INT_MAX});
    case 1:
      return spoil_number(in.key_heads, ": key_heads ",
                          Ints{0, -in.key_heads, in.heads + 1, INT_MIN, INT_MAX});
    case 2:
      return spoil_number(in.value_heads, ": value_heads ",
                          Ints{0, -in.value_heads, in.heads + 1, INT_MIN, INT_MAX});
    case 3:
      return spoil_number(in.d_key, ": d_key ", Ints{0, -1, 1025, INT_MIN, INT_MAX});
    case 4:
      return spoil_number(in.d_value, ": d_value ", Ints{0, -1, 1025, INT_MIN, INT_MAX});
    case 5:
      return spoil_view(in.q, {": q ", ": query_offsets "});
    case 6:
      if (in.halves()) return spoil_view(in.half_k, {": half_k ", " of half_k", ": half_v is given"});
      return spoil_view(in.k, {": k ", " of k"});
    case 7:
      if (in.halves()) return spoil_view(in.half_v, {": half_v "});
      return spoil_view(in.v, {": v "});
    case 34:
      if (!in.halves()) return;
      in.k = {p.k.data, p.k.rows, p.k.cols, p.k.stride};
      spoilt.fields = {": k or v is given besides half_k"};
      return;
    case 8:
      return detail::spoil_offsets(choices, spoilt, in.query_offsets);
    case 9:
      return detail::spoil_offsets(choices, spoilt, in.key_offsets);
    case 10:
      if (in.key_rows.empty()) return;
      spoilt.numbers.assign(in.key_rows.begin(), in.key_rows.end());
      spoil_number(spoilt.numbers[choices.below(static_cast<uint32_t>(spoilt.numbers.size()))], ": key_rows ",
                   Ints{static_cast<int>(in.key_count()), -1, INT_MIN, INT_MAX});
      in.key_rows = spoilt.numbers;
      return;
    case 11:
      return spoil_number(in.scale, ": scale ", Floats{nan, infinity, -infinity});
    case 33:
      in.soft_cap = choices.of({0.0f, -1.0f, nan, infinity});
      spoilt.fields = {": soft_cap "};
      return;
    case 12:
      in.gate = {nullptr, 1, in.heads};
      if (choices.one_in(2)) {
        in.gate.cols += choices.of<int64_t>({1, 100});
      } else {
        in.gate.rows =
            static_cast<int64_t>(in.query_offsets.size()) + 1;  // two more than there are sequences
      }
      in.gate.stride = in.gate.cols;
      spoilt.gate.assign(static_cast<size_t>(in.gate.size()), 1.0f);
      in.gate.data = spoilt.gate.data();
      spoilt.fields = {": gate "};
      return;
    case 13:
      return spoil_number(in.dropout.rate, ": dropout.rate ",
                          Floats{1.0f, nan, -0.1f, 0.999999f, infinity, -infinity, 1e30f});
    case 14:
      if (!in.dropout.active() || in.dropout.sentences.empty()) return;
      in.dropout.sentences = in.dropout.sentences.subspan(1);
      spoilt.fields = {": dropout.sentences "};
      return;
    case 15: {
      static const uint64_t word = 0;
      if (p.longest_keys() == 0) return;
      in.mask = Mask::dense({&word, choices.of<int64_t>({0, -1, LLONG_MIN})});
      spoilt.fields = {": mask "};
      return;
    }
    case 16:
      return spoil_view(p.out.output, {": output "});
    case 17:
      return spoil_view(p.gradients.output, {": output "}, true);
    case 18:
      return spoil_view(p.gradients.d_output, {": d_output "}, true);
    case 19:
      return spoil_view(p.gradients.d_q, {": d_q "}, true);
    case 20:
      return spoil_view(p.gradients.d_k, {": d_k "}, true);
    case 21:
      return spoil_view(p.gradients.d_v, {": d_v "}, true);
    case 22:
      if (in.q.rows == 0 || !p.out.statistics.wanted()) return;
      p.out.lse = nullptr;
      spoilt.fields = {" lse"};
      return;
    case 23:
      spoilt.numbers_of_bias.assign(static_cast<size_t>(in.heads) + 1, 0.5f);
      in.bias.slopes = spoilt.numbers_of_bias;
      spoilt.fields = {": bias.slopes "};
      return;
    case 24:
      if (in.bias.by_distance.empty()) return;
      return spoil_number(in.bias.distance_clip, ": bias.distance_clip ", Ints{-1, INT_MIN, INT_MAX});
    case 25:
      if (in.bias.by_distance.empty()) return;
      spoil_number(in.bias.distance_columns, ": bias.distance_columns ",
                   Ints{0, -1, INT_MIN, INT_MAX, in.bias.distance_columns + 1});
      spoilt.fields.push_back(": bias.by_distance ");
      return;
    case 26:
      if (in.bias.by_distance.empty()) return;
      in.bias.by_distance = in.bias.by_distance.subspan(1);
      if (in.bias.by_distance.empty()) return;  // then there is none, which is possible
      spoilt.fields = {": bias.by_distance "};
      return;
    case 27:
      if (in.bias.buckets.empty() || in.bias.by_distance.empty()) return;
      spoilt.numbers.assign(in.bias.buckets.begin(), in.bias.buckets.end());
      spoil_number(spoilt.numbers[choices.below(static_cast<uint32_t>(spoilt.numbers.size()))],
                   ": bias.buckets ", Ints{in.bias.distance_columns, -1, INT_MIN, INT_MAX});
      in.bias.buckets = spoilt.numbers;
      return;
    case 28:
      spoilt.numbers_of_bias.assign(static_cast<size_t>(attention_weights_size(in)) + 1, 0.5f);
      in.bias.elements = spoilt.numbers_of_bias;
      spoilt.fields = {": bias.elements "};
      return;
    case 29:
      if (!in.bias.by_vectors()) return;
      return spoil_number(in.bias.vector_clip, ": bias.vector_clip ", Ints{-1, INT_MIN, INT_MAX});
    case 30:
      if (in.bias.by_query.cols == 0) return;
      return spoil_view(in.bias.by_query, {": bias.by_query "});
    case 31:
      if (p.gradients.d_bias.by_query.cols == 0) return;
      return spoil_view(p.gradients.d_bias.by_query, {": d_bias.by_query "}, true);
    case 35:
      if (in.bias.by_key.cols == 0) return;
      return spoil_view(in.bias.by_key, {": bias.by_key "});
    case 36:
      if (p.gradients.d_bias.by_key.cols == 0) return;
      return spoil_view(p.gradients.d_bias.by_key, {": d_bias.by_key "}, true);
    case 37:
      if (!in.bias.by_vectors()) return;
      spoilt.numbers.assign(static_cast<size_t>(2 * in.bias.vector_clip + 1), 0);
      in.bias.vector_columns = 1;
      spoil_number(spoilt.numbers[choices.below(static_cast<uint32_t>(spoilt.numbers.size()))],
                   ": bias.vector_buckets ", Ints{1, -1, INT_MIN, INT_MAX});
      in.bias.vector_buckets = spoilt.numbers;
      return;
    default:
      if (in.q.rows == 0) return;
      p.gradients.lse = nullptr;
      spoilt.fields = {": lse "};
      spoilt.backward = true;
  }
}

}  // namespace mh
