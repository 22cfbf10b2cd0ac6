// The Adam optimiser (Kingma and Ba 2015, algorithm 1), with decoupled weight decay: it is not part of the
// gradient (Loshchilov and Hutter 2019, algorithm 2).
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "multihead/autograd/parameter.h"

namespace mh {

struct AdamOptions {
  double beta1 = 0.9;
  double beta2 = 0.98;
  double epsilon = 1e-9;
  double weight_decay = 0;  // of matrices only: biases and gains, which are single rows, do not decay

  bool operator==(const AdamOptions&) const = default;
};

/// Keeps the two moments of every parameter, or of its share of them when several ranks train together (Rajbhandari
/// et al. 2020, ZeRO stage 1). Work is cut into chunks of a fixed size, so the result has the
/// same bits for any number of threads. A parameter that no gradient has reached is not changed.
class Adam {
 public:
  /// Which parameters are this one's: share `index` of `count`, of nearly equal sizes.
  struct Share {
    int index = 0, count = 1;
  };
  /// REQUIRES: the parameters outlive this and keep their shapes.
  Adam(std::vector<NamedParameter> parameters, const AdamOptions& options, const Share& share);
  Adam(std::vector<NamedParameter> parameters, const AdamOptions& options)
      : Adam(std::move(parameters), options, Share{}) {}

  /// Returns sqrt(sum of g^2) over all parameters, summed in double; NaN or infinite if a gradient is.
  double gradient_norm();

  /// Makes one update, t = updates() + 1, with g = gradient_scale * gradient:
  ///   m = b1 m + (1 - b1) g;   v = b2 v + (1 - b2) g^2
  ///   w -= learning_rate * (m / (1 - b1^t) / (sqrt(v / (1 - b2^t)) + epsilon) + weight_decay w)
  /// Clears the gradients in the same pass and marks the parameters as changed. Parameters of other shares keep
  /// their values.
  void update(double learning_rate, double gradient_scale = 1);

  int64_t updates() const { return updates_; }
  /// For resuming from a checkpoint, after the moments were filled.
  void set_updates(int64_t updates) { updates_ = updates; }

  struct Moments {
    Tensor first;   // m
    Tensor second;  // v
  };
  const std::vector<NamedParameter>& parameters() const { return parameters_; }
  /// Whether parameters()[i] belongs to this share.
  bool owns(size_t i) const { return owned_[i] != 0; }
  /// The moments of parameters()[i]; no numbers unless owns(i) or hold_all() was called.
  Moments& moments(size_t i) { return moments_[i]; }
  /// Makes room for the moments of all shares, or gives that of the others back: for checkpoints.
  void hold_all();
  void hold_own();

 private:
  struct Chunk {
    size_t parameter;
    int64_t begin, end;
  };
  std::vector<NamedParameter> parameters_;
  AdamOptions options_;
  std::vector<char> owned_;  // [parameters]
  std::vector<Moments> moments_;
  std::vector<Chunk> chunks_;
  std::vector<double> partial_;  // [chunks]
  int64_t updates_ = 0;
};

/// Returns the factor that scales gradients of this norm down to at most `limit`; 1 when limit is 0
/// (no clipping).
double clip_factor(double norm, double limit);

}  // namespace mh
