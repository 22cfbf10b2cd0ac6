#include "lab/studies/equal_start.h"

#include <cmath>
#include <string>
#include <string_view>

#include "lab/studies/lab.h"
#include "multihead/base/error.h"
#include "multihead/base/random.h"
#include "multihead/models/translator_shape.h"

namespace mh {
namespace {

using lab::Matrix;

constexpr uint64_t kNoiseStream = 700;  // and those behind it, which no parameter's start uses

double squares(const Matrix& a) {
  return lab::norm(a) * lab::norm(a);
}

void multiply(LayerWeights& layer, const std::string& name, double factor) {
  if (!layer.has(name)) return;
  Tensor& value = layer.values.at(name);
  value = lab::in_float(lab::scaled(in_double(value.view()), factor));
}

}  // namespace

DoubleMatrix score_matrix(const LayerWeights& layer, int head) {
  if (layer.geometry.scores == Scores::kMerged) return own_part(layer, "w_qk", head);
  return lab::product_transposed(head_matrix(layer, HeadPart::kQueries, head).weight,
                                 head_matrix(layer, HeadPart::kKeys, head).weight);
}

StartVariances start_variances(const LayerWeights& layer) {
  const HeadGeometry& g = layer.geometry;
  MH_ASSERT(g.query_key_norm == QueryKeyNorm::kNone);
  StartVariances v;
  Matrix output(layer.d_model, layer.d_model);
  for (int h = 0; h < g.heads; ++h) {
    const auto scale = static_cast<double>(*g.scale);
    v.scores += scale * scale * squares(score_matrix(layer, h)) / g.heads;
    const Matrix value = head_matrix(layer, HeadPart::kValues, h).weight;
    v.values += squares(value) / g.d_value / g.heads;
    if (layer.has("w_o")) output = lab::sum(output, lab::product(value, output_matrix(layer, h)));
  }
  v.output = layer.has("w_o") ? squares(output) / layer.d_model : v.values;
  return v;
}

void set_start_variances(LayerWeights& layer, const StartVariances& wanted) {
  const StartVariances now = start_variances(layer);
  const double scores = std::sqrt(wanted.scores / now.scores);
  multiply(layer, "w_qk", scores);
  // Where keys are queries (Scores::kTied) there is no w_k, and the one factor counts twice as well.
  for (const char* name : {"w_q", "w_k"}) multiply(layer, name, std::sqrt(scores));
  const double values = std::sqrt((layer.has("w_o") ? wanted.values : wanted.output) / now.values);
  multiply(layer, "w_v", values);
  multiply(layer, "w_o", std::sqrt(wanted.output / now.output) / values);
}

void set_start_variances(EncoderDecoder& model, const StartVariances& wanted) {
  for (const auto& [name, heads, place] : model.attentions()) {
    MultiHeadAttention& attention = model.attention(name);
    LayerWeights layer = weights_of(attention, model.config().encoder.d_model);
    set_start_variances(layer, wanted);
    put_weights(layer, attention);
  }
}

void add_head_noise(EncoderDecoder& model, double noise, uint64_t seed) {
  uint64_t stream = kNoiseStream;
  for (const auto& [name, heads, place] : model.attentions()) {
    MultiHeadAttention& attention = model.attention(name);
    LayerWeights layer = weights_of(attention, model.config().encoder.d_model);
    for (const char* matrix : {"w_q", "w_k", "w_v", "w_o"}) {
      Random random(seed, stream++);
      const MatrixView all = layer.values.at(matrix).view();
      const bool of_output = std::string_view(matrix) ==
                             "w_o";  // its heads lie below each other, those of the others side by side
      const int64_t size = (of_output ? all.rows : all.cols) / heads;
      const double deviation =
          noise * lab::norm(in_double(all)) / std::sqrt(static_cast<double>(all.rows * all.cols));
      const MatrixView others =
          of_output ? all.rows_between(size, all.rows) : all.columns_between(size, all.cols);
      for (int64_t i = 0; i < others.rows; ++i) {
        for (int64_t j = 0; j < others.cols; ++j) {
          others(i, j) = static_cast<float>(static_cast<double>(others(i, j)) + deviation * random.normal());
        }
      }
    }
    put_weights(layer, attention);
  }
}

StartVariances start_variances(const TranslatorShape& shape, Start start, uint64_t seed) {
  EncoderDecoder model(shape.config());
  model.initialise(seed);
  if (start == Start::kEqualVariances) set_start_variances(model, kCanonicalStart);
  StartVariances mean;
  const auto all = model.attentions();
  const auto count = static_cast<double>(all.size());
  for (const auto& [name, heads, place] : all) {
    const StartVariances one = start_variances(weights_of(model.attention(name), shape.d_model));
    mean.scores += one.scores / count, mean.values += one.values / count, mean.output += one.output / count;
  }
  return mean;
}

}  // namespace mh
