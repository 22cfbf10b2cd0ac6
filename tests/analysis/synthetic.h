// Attention weights made by hand, for tests of what is measured on them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "multihead/analysis/observe_corpus.h"

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

}  // namespace mh::test
