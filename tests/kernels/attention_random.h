// Makes random inputs of attention from bytes, which come from a fuzzer or a random generator.
#pragma once

#include "guarded_attention.h"

namespace mh {

/// Bytes that choose. When they end, every choice is the first one.
class Choices {
 public:
  explicit Choices(std::span<const uint8_t> bytes) : bytes_(bytes) {}
  /// In [0, n). REQUIRES: 0 < n <= 65536.
  uint32_t below(uint32_t n) {
    if (n == 1) return 0;
    uint32_t value = byte();
    if (n > 256) value = value << 8 | byte();
    return value % n;
  }
  bool one_in(uint32_t n) { return below(n) == n - 1; }
  template <class T>
  T of(std::initializer_list<T> values) {
    return values.begin()[below(static_cast<uint32_t>(values.size()))];
  }

 private:
  uint32_t byte() { return at_ < bytes_.size() ? bytes_[at_++] : 0; }
  std::span<const uint8_t> bytes_;
  size_t at_ = 0;
};

namespace detail {

inline void choose_mask(Choices& choices, AttentionDescription& d) {
  switch (choices.below(5)) {
    case 1:
      d.mask = Mask::causal();
      d.mask_name = "causal";
      break;
    case 2:
      d.mask = Mask::causal_top_left();
      d.mask_name = "causal_top_left";
      break;
    case 3: {
      const int64_t left = choices.below(45), right = choices.below(45);
      d.mask = Mask::window(left, right);
      d.mask_name = fmt::format("window {} {}", left, right);
      break;
    }
    case 4:
      d.density = choices.of({1, 0, 3});
      break;
    default:
      break;
  }
}

}  // namespace detail

/// A possible one, small enough for the reference.
inline AttentionDescription random_description(Choices& choices) {
  AttentionDescription d;
  d.seed = choices.below(65536);
  d.heads = choices.of({1, 2, 3, 4, 6});
  const auto divisor = [&] {
    int some = 1 + static_cast<int>(choices.below(static_cast<uint32_t>(d.heads)));
    while (d.heads % some != 0) --some;
    return some;
  };
  d.key_heads = divisor();
  d.value_heads = divisor();
  d.d_key = 1 + static_cast<int>(choices.below(40));
  d.d_value = choices.one_in(2) ? d.d_key : 1 + static_cast<int>(choices.below(40));
  int64_t keys = 0;
  for (uint32_t sequences = choices.below(5); sequences > 0; --sequences) {
    d.queries.push_back(static_cast<int32_t>(choices.below(41)));
    const bool decodes = d.queries.back() < 7 && choices.one_in(2);  // few queries against a long cache
    d.keys.push_back(choices.one_in(2) ? d.queries.back()
                                       : static_cast<int32_t>(choices.below(decodes ? 800 : 41)));
    keys += d.keys.back();
  }
  if (choices.one_in(4) && keys > 0) d.stored = 1 + choices.below(60);
  for (int64_t* padding : {&d.q_padding, &d.k_padding, &d.v_padding, &d.output_padding}) {
    if (choices.one_in(2)) *padding = choices.below(20);
  }
  d.scale = choices.of({attention_scale(d.d_key) * 1.5f, 0.0f, -attention_scale(d.d_key), 1.0f});
  detail::choose_mask(choices, d);
  if (choices.one_in(3)) d.rate = 0.01f * static_cast<float>(choices.below(99));
  d.sentences = d.rate > 0 || choices.one_in(2);
  if (choices.one_in(3)) {
    const size_t rows = choices.one_in(2) ? 1 : d.queries.size();
    for (size_t i = 0; i < rows * static_cast<size_t>(d.heads); ++i)
      d.gate.push_back(choices.of({1.0f, 0.0f, -1.5f, 0.25f}));
  }
  if (choices.one_in(2)) {
    d.slopes = choices.one_in(3);
    d.by_distance = choices.one_in(3);
    d.buckets = choices.one_in(2) ? 1 + static_cast<int>(choices.below(9)) : 0;
    d.elements = choices.one_in(3);
    d.by_query = choices.one_in(3);
    d.by_key = choices.one_in(3);
    d.clip = static_cast<int>(choices.below(45));
    d.d_bias = !choices.one_in(4);
  }
  d.lse = !choices.one_in(8);
  d.statistics = d.lse && choices.one_in(3);
  d.weights = choices.one_in(2);
  d.d_gate = choices.one_in(2);
  d.d_gate_of_each = choices.one_in(2);
  d.poison = choices.one_in(3);
  if (choices.one_in(3)) d.soft_cap = choices.of({1.0f, 50.0f, 0.25f, 1e6f});
  d.halves = choices.one_in(4);
  return d;
}

}  // namespace mh
