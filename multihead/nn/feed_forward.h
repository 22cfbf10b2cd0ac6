// FFN(x) = activation(x W_1 + b_1) W_2 + b_2    (Vaswani et al. 2017, eq. 2)
#pragma once

#include <cstdint>
#include <string>

#include "multihead/nn/transformer_layer.h"

namespace mh {

class FeedForward {
 public:
  FeedForward(const TransformerLayerConfig& config, DropoutSites& sites)
      : activation_(config.activation),
        rate_(config.dropout.activation),
        site_(sites.next()),
        w_1_(config.d_model, config.d_ff),
        b_1_(1, config.d_ff),
        w_2_(config.d_ff, config.d_model),
        b_2_(1, config.d_model),
        first_({&w_1_}, {&b_1_}),
        second_({&w_2_}, {&b_2_}) {}
  FeedForward(const FeedForward&) = delete;
  FeedForward& operator=(const FeedForward&) = delete;

  /// activation(x W_1 + b_1) with dropout: [N, d_ff].
  Var hidden(Context& context, Var x, const Sequences& rows) const {
    return affine(context.tape, x, first_,
                  {.activation = activation_, .dropout = dropout_at(context, rate_, site_, rows)});
  }
  /// W_2 and b_2, for the residual connection to apply.
  const Affine* second() const { return &second_; }

  void initialise(Random& random) {
    xavier_uniform(w_1_, random, w_1_.value.rows(), w_1_.value.cols());
    xavier_uniform(w_2_, random, w_2_.value.rows(), w_2_.value.cols());
  }
  void visit(const std::string& name, const ParameterVisitor& visitor) {
    visitor(name + ".w_1", w_1_);
    visitor(name + ".b_1", b_1_);
    visitor(name + ".w_2", w_2_);
    visitor(name + ".b_2", b_2_);
  }

 private:
  Activation activation_;
  float rate_;
  uint32_t site_;
  Parameter w_1_, b_1_, w_2_, b_2_;
  Affine first_, second_;
};

}  // namespace mh
