// How a layer starts, by what its projections do to rows rather than by the size of their numbers. Layers of
// different geometry can then start alike: with equal variance of the scores and of the output.
//
// For independent rows x_a, x_b [1, d] of independent numbers of mean 0 and variance 1, and the expectation over
// the rows (not over the weights):
//   scores   variance of scale (x_a W_i^Q) (x_b W_i^K)^T      = scale^2 |W_i^Q W_i^K^T|^2, the mean over heads
//   values   variance of a number of x W_i^V                  = |W_i^V|^2 / d_v, the mean over heads
//   output   variance of a number of sum_i x W_i^V W_i^O: all heads read one row
//                                                             = |sum_i W_i^V W_i^O|^2 / d; of x W_i^V without W^O
// |.|^2 is the sum of squares.
#pragma once

#include <cstdint>

#include "lab/studies/run_log.h"
#include "multihead/models/encoder_decoder.h"
#include "multihead/nn/layer_weights.h"

namespace mh {

struct StartVariances {
  double scores = 0, values = 0, output = 0;
};
/// REQUIRES: neither query-key norm nor positions inside the scores.
StartVariances start_variances(const LayerWeights& layer);

/// Of canonical heads with a packed in_proj (Xavier, fans d and 3 d; W^O with fans d and d), in expectation:
/// what Start::kEqualVariances gives every layer.
inline constexpr StartVariances kCanonicalStart{.scores = 0.25, .values = 0.5, .output = 0.5};

/// Multiplies W^Q and W^K by one factor (a merged W_i by its square), W^V by another and W^O by a third, so that
/// the layer has these variances.
void set_start_variances(LayerWeights& layer, const StartVariances& wanted);
/// The same for every attention of a model.
void set_start_variances(EncoderDecoder& model, const StartVariances& wanted);

/// W^Q_i W^K_i^T [d, d], by which head i scores pairs of rows. It is what a rotation of its queries and keys leaves alone.
/// REQUIRES: neither query-key norm nor positions inside the scores.
DoubleMatrix score_matrix(const LayerWeights& layer, int head);

/// Adds to the part of every head but the first, of W^Q, W^K, W^V and W^O of every attention, normal noise whose standard deviation
/// is `noise` times the root mean square of that matrix. Of heads that start equal it sets how far apart they start.
/// Numbers have 24 bits: of a noise below 1e-7 most is rounded away, and what is left is in the smallest numbers.
/// REQUIRES: projections of the whole row, one for each head.
void add_head_noise(EncoderDecoder& model, double noise, uint64_t seed);

/// The mean over the attentions of a model that starts so from this seed.
StartVariances start_variances(const EncoderDecoderConfig& config, Start start, uint64_t seed);

}  // namespace mh
