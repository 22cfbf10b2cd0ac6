#include "multihead/heads/attribution/layer_mixes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "multihead/base/error.h"
#include "multihead/nn/attention_place.h"
#include "multihead/nn/layer_weights.h"
#include "multihead/nn/multi_head_attention.h"

namespace mh {
namespace {

DoubleMatrix unit_matrix(int64_t size) {
  DoubleMatrix unit(size, size);
  for (int64_t i = 0; i < size; ++i) unit(i, i) = 1;
  return unit;
}

/// [left | right], each of which may have no columns.
DoubleMatrix beside(const DoubleMatrix& left, const DoubleMatrix& right, int64_t rows) {
  DoubleMatrix both(rows, left.cols() + right.cols());
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < left.cols(); ++j) both(i, j) = left(i, j);
    for (int64_t j = 0; j < right.cols(); ++j) both(i, left.cols() + j) = right(i, j);
  }
  return both;
}

/// to = share * to + factor * (a b).
void mix_into(DoubleMatrix& to, double share, double factor, const DoubleMatrix& a, const DoubleMatrix& b) {
  const DoubleMatrix added = product(a.view(), b.view());
  for (int64_t i = 0; i < to.size(); ++i) to.data()[i] = share * to.data()[i] + factor * added.data()[i];
}

/// f_h(x_j) of all heads side by side: [keys, heads * d_model].
DoubleMatrix transformed_values(const Model& model, const std::string& attention, ConstMatrixView values) {
  const MultiHeadAttention& layer = model.attention(attention);
  const HeadGeometry& g = layer.geometry();
  if (g.weights == HeadWeights::kDifferential)
    throw UsageError(fmt::format(
        "{} has differential heads, whose output is no sum of weighted values; leave norm-weighted out",
        attention));
  const LayerWeights weights = weights_of(layer, model.facts().d_model);
  const DoubleMatrix all = in_double(values);
  DoubleMatrix found;
  for (int h = 0; h < g.heads; ++h) {
    const int64_t first = int64_t{h} * g.value_heads / g.heads * g.d_value;
    DoubleMatrix own(all.rows(), g.d_value);
    for (int64_t j = 0; j < own.rows(); ++j)
      for (int64_t c = 0; c < own.cols(); ++c) own(j, c) = all(j, first + c);
    found = beside(found, product(own.view(), output_matrix(weights, h).view()), all.rows());
  }
  return found;
}

ConstMatrixView weights_of_head(const SiteValues& kept, const std::string& attention, int head) {
  return kept.kept(weights_site({attention, head})).sequence(0);
}

/// R of which only what came over attention counts, rows summing to 2 with the token's own (equations 8 and 9).
DoubleMatrix normalised_relevance(const DoubleMatrix& relevance) {
  DoubleMatrix found = relevance;
  for (int64_t i = 0; i < found.rows(); ++i) found(i, i) -= 1;
  divide_rows_by_sums(found);
  for (int64_t i = 0; i < found.rows(); ++i) found(i, i) += 1;
  return found;
}

}  // namespace

LayerMixes mixes_of(const Model& model, const std::function<DoubleMatrix(const Model::Attention&)>& mix) {
  LayerMixes mixes;
  for (const Model::Attention& attention : model.attentions()) {
    const AttentionPlace place = attention.place;
    auto& stack = place.kind == AttentionKind::kEncoderSelf ? mixes.encoder : mixes.decoder;
    stack.resize(std::max(stack.size(), static_cast<size_t>(place.layer) + 1));
    LayerMix& layer = stack[static_cast<size_t>(place.layer)];
    (place.kind == AttentionKind::kCross ? layer.cross : layer.self) = mix(attention);
  }
  return mixes;
}

LayerMixes mean_weights(const Model& model, const SiteValues& kept) {
  return mixes_of(model, [&](const Model::Attention& attention) {
    DoubleMatrix mean;
    for (int h = 0; h < attention.heads; ++h) {
      const ConstMatrixView a = weights_of_head(kept, attention.name, h);
      if (h == 0) mean = DoubleMatrix(a.rows, a.cols);
      for (int64_t i = 0; i < a.rows; ++i)
        for (int64_t j = 0; j < a.cols; ++j) mean(i, j) += static_cast<double>(a(i, j)) / attention.heads;
    }
    return mean;
  });
}

LayerMixes positive_weights(const Model& model, const SiteValues& kept) {
  return mixes_of(model, [&](const Model::Attention& attention) {
    DoubleMatrix mean;
    for (int h = 0; h < attention.heads; ++h) {
      const ConstMatrixView a = weights_of_head(kept, attention.name, h);
      const ConstMatrixView gradient = kept.gradient(weights_site({attention.name, h}));
      if (h == 0) mean = DoubleMatrix(a.rows, a.cols);
      for (int64_t i = 0; i < a.rows; ++i)
        for (int64_t j = 0; j < a.cols; ++j)
          mean(i, j) += std::max(0.0, static_cast<double>(a(i, j)) * static_cast<double>(gradient(i, j))) /
                        attention.heads;
    }
    return mean;
  });
}

LayerMixes norm_weighted(const Model& model, const SiteValues& kept) {
  return mixes_of(model, [&](const Model::Attention& attention) {
    const DoubleMatrix f = transformed_values(
        model, attention.name, kept.value(Site{attention.name, SitePart::kValues}.name()).view());
    const int64_t d = f.cols() / attention.heads;
    const ConstMatrixView shape = weights_of_head(kept, attention.name, 0);
    DoubleMatrix norms(shape.rows, shape.cols);
    std::vector<double> sum(static_cast<size_t>(d));
    for (int64_t i = 0; i < shape.rows; ++i) {
      for (int64_t j = 0; j < shape.cols; ++j) {
        std::fill(sum.begin(), sum.end(), 0.0);
        for (int h = 0; h < attention.heads; ++h) {
          const auto a = static_cast<double>(weights_of_head(kept, attention.name, h)(i, j));
          for (int64_t c = 0; c < d; ++c) sum[static_cast<size_t>(c)] += a * f(j, h * d + c);
        }
        double square = 0;
        for (const double one : sum) square += one * one;
        norms(i, j) = std::sqrt(square);
      }
    }
    divide_rows_by_sums(norms);
    return norms;
  });
}

std::vector<double> last_layer(const LayerMixes& mixes, const std::vector<double>& rows) {
  const LayerMix& layer = mixes.last().back();
  if (layer.cross.rows() == 0) return weighed_rows(rows, layer.self);
  std::vector<double> found = weighed_rows(rows, layer.cross);
  const std::vector<double> own = weighed_rows(rows, layer.self);
  found.insert(found.end(), own.begin(), own.end());
  return found;
}

DoubleMatrix rollout(const LayerMixes& mixes, Sublayers sublayers) {
  const bool in_turn = sublayers == Sublayers::kInTurn;
  const double share = in_turn ? 0.5 : 0, factor = in_turn ? 0.5 : 1;
  DoubleMatrix source;
  if (!mixes.encoder.empty()) source = unit_matrix(mixes.encoder[0].self.rows());
  for (const LayerMix& layer : mixes.encoder) mix_into(source, share, factor, layer.self, source);
  if (mixes.decoder.empty()) return source;
  const int64_t targets = mixes.decoder[0].self.rows();
  const DoubleMatrix of_encoder = beside(source, DoubleMatrix(source.rows(), targets), source.rows());
  DoubleMatrix all = beside(DoubleMatrix(targets, source.cols()), unit_matrix(targets), targets);
  for (const LayerMix& layer : mixes.decoder) {
    mix_into(all, share, factor, layer.self, all);
    if (layer.cross.rows() > 0) mix_into(all, in_turn ? share : 1, factor, layer.cross, of_encoder);
  }
  return all;
}

DoubleMatrix relevance(const LayerMixes& mixes) {
  DoubleMatrix source;
  if (!mixes.encoder.empty()) source = unit_matrix(mixes.encoder[0].self.rows());
  for (const LayerMix& layer : mixes.encoder) mix_into(source, 1, 1, layer.self, source);
  if (mixes.decoder.empty()) return source;
  const int64_t targets = mixes.decoder[0].self.rows();
  DoubleMatrix own = unit_matrix(targets), crossed(targets, source.rows());
  for (const LayerMix& layer : mixes.decoder) {
    if (source.rows() > 0) mix_into(crossed, 1, 1, layer.self, crossed);
    mix_into(own, 1, 1, layer.self, own);
    if (layer.cross.rows() == 0) continue;
    const DoubleMatrix right = product(layer.cross.view(), normalised_relevance(source).view());
    mix_into(crossed, 1, 1, transposed(normalised_relevance(own).view()), right);
  }
  return beside(crossed, own, targets);
}

std::vector<double> weighed_rows(const std::vector<double>& rows, const DoubleMatrix& all) {
  std::vector<double> found(static_cast<size_t>(all.cols()));
  for (int64_t i = 0; i < all.rows(); ++i)
    for (int64_t j = 0; j < all.cols(); ++j)
      found[static_cast<size_t>(j)] += rows[static_cast<size_t>(i)] * all(i, j);
  return found;
}

void divide_rows_by_sums(DoubleMatrix& rows) {
  for (int64_t i = 0; i < rows.rows(); ++i) {
    double sum = 0;
    for (int64_t j = 0; j < rows.cols(); ++j) sum += rows(i, j);
    for (int64_t j = 0; j < rows.cols() && sum != 0; ++j) rows(i, j) /= sum;
  }
}

}  // namespace mh
