// LayerMixes: for each layer how much of each token goes into each token, by one of several measures (heads_attribution.h), and what
// that makes of the whole model.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "multihead/heads/attribution/explained_text.h"
#include "multihead/heads/sites/site_values.h"
#include "multihead/tensor/linear_algebra.h"

namespace mh {

/// Row i: what goes into token i.
struct LayerMix {
  DoubleMatrix self;        // [T, T]
  DoubleMatrix cross = {};  // [T, S], of a translator's decoder
};

struct LayerMixes {
  std::vector<LayerMix> encoder = {};  // [S, S]; of a causal model none
  std::vector<LayerMix> decoder = {};  // of an encoder none

  /// The stack whose output is explained.
  const std::vector<LayerMix>& last() const { return decoder.empty() ? encoder : decoder; }
};

/// One matrix for each attention of the model, made by `mix`.
LayerMixes mixes_of(const Model& model, const std::function<DoubleMatrix(const Model::Attention&)>& mix);
/// The mean over heads of the weights, of values that kept "*.weights.*".
LayerMixes mean_weights(const Model& model, const SiteValues& kept);
/// The mean over heads of max(A * dF/dA, 0), of values that kept and watched "*.weights.*".
LayerMixes positive_weights(const Model& model, const SiteValues& kept);
/// ||sum_h A_h(i, j) f_h(x_j)||, each row divided by its sum (a row of zeros stays), of values that kept "*.weights.*" and
/// "*.values". Throws UsageError on heads whose output is not a sum of weighted values.
LayerMixes norm_weighted(const Model& model, const SiteValues& kept);

/// rows of the last layer alone: source tokens, then target tokens.
std::vector<double> last_layer(const LayerMixes& mixes, const std::vector<double>& rows);

enum class Sublayers {
  kInTurn,    // self-attention and then cross-attention, each (I + A) / 2
  kTogether,  // the layer is one factor, self and cross side by side, without I
};
/// The products of all layers, [tokens of the last stack, source tokens then target tokens]. Rows sum to 1 where those of the
/// mixes do.
DoubleMatrix rollout(const LayerMixes& mixes, Sublayers sublayers);
/// R of Chefer et al. 2021, of positive_weights(), likewise.
DoubleMatrix relevance(const LayerMixes& mixes);

/// rows^T all.
std::vector<double> weighed_rows(const std::vector<double>& rows, const DoubleMatrix& all);
/// Divides each row by its sum where that is not 0.
void divide_rows_by_sums(DoubleMatrix& rows);

}  // namespace mh
