// HeadRows: the queries, keys and values of each head of a layer, as the layer itself projects them, with
// their names in a trace.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "multihead/heads/reports/trace/layer_parameters.h"
#include "multihead/heads/reports/trace/trace_recorder.h"
#include "multihead/nn/heads.h"
#include "multihead/nn/multi_head_attention.h"

namespace mh {

/// A head has one softmax; a differential head has two, each with its own queries and keys.
class HeadRows {
 public:
  /// For self-attention of the rows x, or for cross-attention of x to a memory. REQUIRES: all arguments
  /// outlive this.
  HeadRows(const MultiHeadAttention& layer, const LayerParameters& parameters, Context& context, Var x);
  HeadRows(const MultiHeadAttention& layer, const LayerParameters& parameters, Context& context, Var x,
           Var memory);

  int softmaxes() const { return softmaxes_; }  // of a head
  /// The end of names: "_0" for head 0, "_0_2" for the second softmax of differential head 0.
  std::string suffix(int head, int64_t softmax) const;
  /// The number of a softmax among all of the layer.
  int64_t number(int head, int64_t softmax) const { return int64_t{head} * softmaxes_ + softmax; }

  /// The queries and keys of one softmax, after rotary positions have turned them; [T, d_key].
  Var queries(int head, int64_t softmax);
  Var keys(int head, int64_t softmax);
  Var values(int head);
  std::string name_of_queries(int head, int64_t softmax) const;
  std::string name_of_keys(int head, int64_t softmax) const;
  std::string name_of_values(int head) const;

  /// Adds the head's parameters to a trace, then its queries, keys and values. What several heads share is
  /// added with the first of them only.
  void show(int head, TraceRecorder& recorder) const;

 private:
  int64_t key_of(int head, int64_t softmax) const;
  int64_t value_of(int head) const { return head * value_heads_ / geometry_.heads; }
  bool reads(int head, int64_t softmaxes, int64_t key) const;
  int first_of(int64_t group, int64_t groups) const;
  std::string own_name_of_keys(int64_t key) const;
  std::string part(int64_t softmax) const;
  void show_parameters(int head, TraceRecorder& recorder) const;
  void show_keys(int head, TraceRecorder& recorder) const;
  struct Shown {
    std::string name, formula;
    std::vector<int> owners;
    TraceAxis axis;
  };
  void show_met(const Shown& what, Var plain, Var met, int64_t begin, TraceRecorder& recorder) const;

  const HeadGeometry& geometry_;
  const LayerParameters& parameters_;
  Tape& tape_;
  std::string memory_name_;
  bool turned_ = false;
  std::string turned_words_;  // how
  int softmaxes_;
  ProjectedHeads plain_, met_;  // before and after positions turn them
  int64_t d_key_ = 0, key_groups_ = 0, value_heads_ = 0;
};

}  // namespace mh
