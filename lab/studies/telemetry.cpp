#include "lab/studies/telemetry.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lab/studies/equal_start.h"
#include "multihead/heads/corpus/observe_corpus.h"
#include "multihead/heads/measures/similar_heads.h"
#include "multihead/models/encoder_decoder.h"
#include "multihead/nn/layer_weights.h"
#include "multihead/tensor/linear_algebra.h"

namespace mh {
namespace {

bool of_encoder(const AttentionPlace& place) {
  return place.kind == AttentionKind::kEncoderSelf;
}

double inner_product(const DoubleMatrix& a, const DoubleMatrix& b) {
  double sum = 0;
  for (int64_t i = 0; i < a.size(); ++i) sum += a.data()[i] * b.data()[i];
  return sum;
}

/// Of the matrices as vectors.
double cosine_of(const DoubleMatrix& a, const DoubleMatrix& b) {
  const double sizes = inner_product(a, a) * inner_product(b, b);
  return sizes > 0 ? inner_product(a, b) / std::sqrt(sizes) : 0;
}

double entropy_term(double p) {
  return p > 0 ? -p * std::log(p) : 0;
}

class Diversity : public CorpusObserver {
 public:
  explicit Diversity(const EncoderDecoder& model) {
    for (const auto& [name, heads, place] : model.attentions()) {
      if (!of_encoder(place)) continue;
      const LayerWeights layer = weights_of(model.attention(name), model.config().encoder.d_model);
      for (int h = 0; h < heads; ++h) output_matrices_[name].push_back(output_matrix(layer, h));
    }
  }

  bool wants_weights(const Model::Attention& attention) const override { return of_encoder(attention.place); }

  void weights(const BatchWeights& batch) override {
    const int heads = batch.heads();
    const std::vector<DoubleMatrix>& output = output_matrices_.at(batch.attention.name);
    const int64_t size = batch.outputs.cols / heads;
    for (int s = 0; s < batch.sequences(); ++s) {
      const ConstMatrixView rows = batch.outputs.rows_between(
          batch.query_offsets[static_cast<size_t>(s)], batch.query_offsets[static_cast<size_t>(s) + 1]);
      std::vector<DoubleMatrix> written;  // [T, d_model] of each head
      for (int h = 0; h < heads; ++h) {
        written.push_back(product(in_double(rows.columns_between(h * size, (h + 1) * size)).view(),
                                  output[static_cast<size_t>(h)].view()));
        add_entropy(batch.matrix(s, h));
        for (int j = 0; j < h; ++j) {
          written_ += cosine_of(written.back(), written[static_cast<size_t>(j)]);
          add_pair(batch.matrix(s, h), batch.matrix(s, j));
          ++pairs_;
        }
      }
    }
  }

  HeadTelemetry result() const {
    const auto at_least_one = [](int64_t count) { return static_cast<double>(std::max<int64_t>(1, count)); };
    const double pairs = at_least_one(pairs_);
    HeadTelemetry mean = sums_;
    mean.positions /= pairs, mean.divergence /= pairs;
    mean.entropy /= at_least_one(rows_);
    mean.written = written_ / pairs;
    return mean;
  }

 private:
  void add_entropy(ConstMatrixView a) {
    for (int64_t i = 0; i < a.rows && a.cols > 1; ++i, ++rows_) {
      double sum = 0;
      for (int64_t j = 0; j < a.cols; ++j) sum += entropy_term(static_cast<double>(a(i, j)));
      sums_.entropy += sum / std::log(static_cast<double>(a.cols));
    }
  }
  void add_pair(ConstMatrixView a, ConstMatrixView b) {
    double common = 0, divergence = 0;
    for (int64_t i = 0; i < a.rows; ++i) {
      for (int64_t j = 0; j < a.cols; ++j) {
        const auto x = static_cast<double>(a(i, j)), y = static_cast<double>(b(i, j));
        common += x * y;
        divergence += entropy_term((x + y) / 2) - (entropy_term(x) + entropy_term(y)) / 2;
      }
    }
    sums_.positions += common / static_cast<double>(a.rows);
    sums_.divergence += divergence / static_cast<double>(a.rows);
  }

  std::map<std::string, std::vector<DoubleMatrix>> output_matrices_;  // W_i^O [d_value, d_model]
  HeadTelemetry sums_;
  double written_ = 0;
  int64_t pairs_ = 0, rows_ = 0;
};

}  // namespace

std::optional<double> head_distance(const EncoderDecoder& model) {
  double sum = 0;
  int64_t pairs = 0;
  for (const auto& [name, heads, place] : model.attentions()) {
    if (!of_encoder(place)) continue;
    const LayerWeights layer = weights_of(model.attention(name), model.config().encoder.d_model);
    const HeadGeometry& g = layer.geometry;
    if (g.scores != Scores::kQueryKey || g.query_key_norm != QueryKeyNorm::kNone ||
        g.weights != HeadWeights::kSoftmax)
      return {};
    std::vector<DoubleMatrix> scores;
    for (int h = 0; h < heads; ++h) {
      const DoubleMatrix& mine = scores.emplace_back(score_matrix(layer, h));
      for (int j = 0; j < h; ++j) {
        const DoubleMatrix& other = scores[static_cast<size_t>(j)];
        const double sizes = inner_product(mine, mine) + inner_product(other, other);
        double difference = 0;
        for (int64_t i = 0; i < mine.size(); ++i) difference += std::pow(mine.data()[i] - other.data()[i], 2);
        sum += sizes > 0 ? std::sqrt(difference / sizes) : 0;
        ++pairs;
      }
    }
  }
  return pairs > 0 ? std::optional(sum / static_cast<double>(pairs)) : std::nullopt;
}

HeadTelemetry head_telemetry(EncoderDecoder& model, const TrainingCorpus& corpus, size_t sentences) {
  const auto& sources = corpus.tokens.source;
  const std::span<const std::vector<int32_t>> some(sources.data(), std::min(sentences, sources.size()));
  Diversity diversity(model);
  SimilarHeadsObserver similar(compared_attentions(model), {});
  CorpusObserver* const observers[] = {&diversity, &similar};
  observe_corpus(model, some, {}, observers);
  HeadTelemetry found = diversity.result();
  for (const ComparedHeads& kind : similar.kinds()) {
    if (kind.kind == AttentionKind::kEncoderSelf && kind.within_layers && kind.within_layers->ratio)
      found.ratio = kind.within_layers->ratio->mean;
  }
  found.distance = head_distance(model);
  return found;
}

}  // namespace mh
