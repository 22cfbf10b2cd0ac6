// FFN(x) = activation(x W_1 + b_1) W_2 + b_2, [N, d_model] -> [N, d_model]    (Vaswani et al. 2017, eq. 2),
// or the gated form of FeedForwardConfig.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "multihead/nn/norm_layer.h"

namespace mh {

class FeedForward {
 public:
  FeedForward(const FeedForwardConfig& config, int d_model, float dropout, DropoutStreams& streams)
      : activation_(config.activation),
        gated_(config.gated),
        biased_(config.biases == Biases::kAll),
        rate_(dropout),
        stream_(streams.next()),
        w_gate_(gated_ ? Parameter(d_model, config.d_ff) : Parameter()),
        b_gate_(gated_ ? Parameter(1, config.d_ff) : Parameter()),
        w_1_(d_model, config.d_ff),
        b_1_(1, config.d_ff),
        w_2_(config.d_ff, d_model),
        b_2_(1, d_model),
        first_(gated_ ? Affine({&w_gate_, &w_1_}, biases({&b_gate_, &b_1_}))
                      : Affine({&w_1_}, biases({&b_1_}))),
        second_({&w_2_}, biases({&b_2_})) {}
  FeedForward(const FeedForward&) = delete;
  FeedForward& operator=(const FeedForward&) = delete;

  /// Everything before W_2, with dropout: [N, d_model] -> [N, d_ff].
  Var hidden(Context& context, Var x, const Sequences& rows) const {
    const AffineOptions options{.activation = activation_,
                                .dropout = dropout_at(context, rate_, stream_, rows)};
    return gated_ ? gated_affine(context.tape, x, first_, options) : affine(context.tape, x, first_, options);
  }
  /// W_2 and b_2, which the residual connection applies (norm_layer.h).
  const Affine* second() const { return &second_; }

  void initialise(Random& random) {
    if (gated_) fill_xavier(w_gate_, random, w_gate_.value.rows(), w_gate_.value.cols());
    fill_xavier(w_1_, random, w_1_.value.rows(), w_1_.value.cols());
    fill_xavier(w_2_, random, w_2_.value.rows(), w_2_.value.cols());
  }
  void visit(const std::string& name, const ParameterVisitor& visitor) {
    const auto pair = [&](const char* weight, Parameter& w, const char* bias, Parameter& b) {
      visitor(name + weight, w);
      if (biased_) visitor(name + bias, b);
    };
    if (gated_) pair(".w_gate", w_gate_, ".b_gate", b_gate_);
    pair(".w_1", w_1_, ".b_1", b_1_);
    pair(".w_2", w_2_, ".b_2", b_2_);
  }

 private:
  std::vector<const Parameter*> biases(std::initializer_list<const Parameter*> all) const {
    return biased_ ? std::vector<const Parameter*>(all) : std::vector<const Parameter*>();
  }

  Activation activation_;
  bool gated_, biased_;
  float rate_;
  uint32_t stream_;
  Parameter w_gate_, b_gate_, w_1_, b_1_, w_2_, b_2_;
  Affine first_, second_;
};

}  // namespace mh
