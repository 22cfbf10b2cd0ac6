// Attention weights made by hand, for tests of what is measured on them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "multihead/data/tree_bank.h"
#include "multihead/heads/corpus/observe_corpus.h"
#include "multihead/tensor/tensor.h"

namespace mh::test {

/// The entry of Model::attentions() with this name, "encoder.3.self_attention".
inline Model::Attention attention_named(const std::string& name, int heads = 1) {
  const AttentionKind kind = name.ends_with(".cross_attention") ? AttentionKind::kCross
                             : name.starts_with("encoder.")     ? AttentionKind::kEncoderSelf
                                                                : AttentionKind::kDecoderSelf;
  return {.name = name,
          .heads = heads,
          .place = {.kind = kind, .layer = std::stoi(name.substr(name.find('.') + 1))}};
}

/// Weights of one attention as an observer gets them, of sentences 0, 1, ... of a corpus.
class Synthetic {
 public:
  Synthetic(const std::string& name, int heads)
      : attention_(attention_named(name, heads)), rows_(static_cast<size_t>(heads)) {}

  /// Of the next sentence: matrices[h][i][j].
  void add(const std::vector<std::vector<std::vector<double>>>& matrices) {
    for (size_t h = 0; h < rows_.size(); ++h)
      rows_[h].insert(rows_[h].end(), matrices[h].begin(), matrices[h].end());
    sentences_.push_back(static_cast<int64_t>(sentences_.size()));
    queries_.push_back(queries_.back() + static_cast<int32_t>(matrices[0].size()));
    keys_.insert(keys_.end(), matrices[0].size(), static_cast<int32_t>(matrices[0][0].size()));
  }
  BatchWeights observed() {
    const auto rows = static_cast<int64_t>(keys_.size()),
               longest = int64_t{*std::max_element(keys_.begin(), keys_.end())};
    values_.clear();
    for (const auto& head : rows_) {
      Tensor& value = values_.emplace_back(rows, longest);
      for (size_t i = 0; i < head.size(); ++i) {
        for (size_t j = 0; j < head[i].size(); ++j)
          value(static_cast<int64_t>(i), static_cast<int64_t>(j)) = static_cast<float>(head[i][j]);
      }
    }
    matrices_.clear();
    for (const Tensor& value : values_) matrices_.emplace_back(value.view());
    return {.attention = attention_,
            .sentences = sentences_,
            .query_offsets = queries_,
            .keys = keys_,
            .matrices = matrices_,
            .values = {},
            .outputs = {}};
  }

 private:
  Model::Attention attention_;
  std::vector<std::vector<std::vector<double>>> rows_;  // of each head and query
  std::vector<int64_t> sentences_;
  std::vector<int32_t> queries_{0}, keys_;
  std::vector<Tensor> values_;
  std::vector<ConstMatrixView> matrices_;
};

/// head: -1 is the root.
inline Word word(const char* form, int head, const char* relation) {
  return {.form = form, .lemma = form, .upos = "X", .head = head, .relation = relation};
}

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
