// Weights made by hand, and small random models of prime sizes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "multihead/analysis/observe_corpus.h"
#include "multihead/base/random.h"
#include "multihead/models/transformer.h"

namespace mh::test {

/// Weights of one attention as an observer gets them: matrices are added by sequence, then head.
class Synthetic {
 public:
  Synthetic(std::string name, int heads) : name_(std::move(name)), heads_(heads) {}

  /// matrices[h][i][j].
  void add(const std::vector<std::vector<std::vector<double>>>& matrices) {
    for (const auto& matrix : matrices) {
      for (const auto& row : matrix) weights_.insert(weights_.end(), row.begin(), row.end());
    }
    queries_.push_back(queries_.back() + static_cast<int32_t>(matrices[0].size()));
    keys_.push_back(keys_.back() + static_cast<int32_t>(matrices[0][0].size()));
  }
  ObservedWeights observed() const {
    return {.name = name_,
            .heads = heads_,
            .query_offsets = queries_,
            .key_offsets = keys_,
            .weights = weights_.data()};
  }

 private:
  std::string name_;
  int heads_;
  std::vector<int32_t> queries_{0}, keys_{0};
  std::vector<float> weights_;
};

/// Rows that are one-hot at the keys named.
inline std::vector<std::vector<double>> one_hot(const std::vector<int>& keys, int count) {
  std::vector<std::vector<double>> rows;
  for (const int key : keys) {
    rows.emplace_back(static_cast<size_t>(count), 0.0);
    rows.back()[static_cast<size_t>(key)] = 1;
  }
  return rows;
}

inline TransformerConfig small_config() {
  TransformerConfig config;
  config.vocabulary_size = 37;
  config.d_model = 20;
  config.encoder_layers = 2;
  config.decoder_layers = 3;
  config.encoder_heads = 5;
  config.decoder_heads = 2;
  config.encoder_ff = 13;
  config.decoder_ff = 17;
  config.max_positions = 19;
  config.pad_id = config.decoder_start_id = 2;
  return config;
}

/// Sentences of 1 to 11 tokens; with_end: the last is the end token, 0.
inline std::vector<std::vector<int32_t>> random_sentences(uint64_t seed, size_t count, bool with_end) {
  Random random(seed);
  std::vector<std::vector<int32_t>> all;
  for (size_t i = 0; i < count; ++i) {
    auto& sentence = all.emplace_back();
    const uint32_t length = 1 + random.below(11);
    for (uint32_t t = 0; t < length; ++t) sentence.push_back(static_cast<int32_t>(3 + random.below(34)));
    if (with_end) sentence.push_back(0);
  }
  return all;
}

}  // namespace mh::test
