// The matrices that circuits are made of (heads_circuits.h): W_Q, W_K, W_V and W_O of each head, norms folded in, and words at both
// ends of a model.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "multihead/autograd/parameter.h"
#include "multihead/base/matrix_view.h"
#include "multihead/models/model.h"
#include "multihead/nn/attention_place.h"
#include "multihead/nn/stack_config.h"
#include "multihead/tensor/linear_algebra.h"

namespace mh {

/// The matrices of one attention. Query head h has keys[h * keys.size() / heads], values likewise.
struct CircuitWeights {
  std::vector<DoubleMatrix> queries;  // of each head, [d_model, d_key]
  std::vector<DoubleMatrix> keys;     // of each head of keys, [d_model, d_key]
  std::vector<DoubleMatrix> values;   // of each head of values, [d_model, d_value]
  std::vector<DoubleMatrix> outputs;  // of each head, [d_value, d_model]
};

class CircuitModel {
 public:
  /// Keeps a reference to the model.
  explicit CircuitModel(const Model& model);

  /// Throws UsageError naming the attention when its heads have no such matrices.
  CircuitWeights weights(const std::string& attention) const;
  /// W_U W_E [d_model, d_model], as heads_circuits.h defines them; none if there is nothing to read out with or no token has one
  /// number on both sides.
  std::optional<DoubleMatrix> words(AttentionKind kind) const;

 private:
  /// N of heads_circuits.h.
  struct FoldedNorm {
    ConstMatrixView gain = {};  // [1, d_model]; empty: there is no norm
    bool centred = false;

    void multiply_left(DoubleMatrix& m) const;   // m becomes N m
    void multiply_right(DoubleMatrix& m) const;  // m becomes m N
  };
  /// The norm whose gain has this name, e.g. "encoder.final_norm.gain", if the model has one.
  FoldedNorm norm(const std::string& gain, NormKind kind) const;
  FoldedNorm norm_before(const std::string& attention, const AttentionPlace& place) const;
  FoldedNorm norm_at_end(std::string_view stack) const;

  const Model& model_;
  std::map<std::string, NormConfig, std::less<>> norms_;  // of each stack
  NormKind embedding_norm_ = NormKind::kLayer;            // where there is one
  std::map<std::string, const Parameter*, std::less<>> parameters_;
};

}  // namespace mh
